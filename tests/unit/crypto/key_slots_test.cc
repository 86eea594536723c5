// SPDX-License-Identifier: Apache-2.0
#include "crypto/key_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/coding.h"

namespace varve::crypto {
namespace {

constexpr std::string_view kId = "00112233445566778899aabbccddeeff";
constexpr PassphraseCost kCheap{.memory_kib = 16, .passes = 1, .lanes = 2};

Secret secret_of(std::string_view text) { return *Secret::copy_of(base::as_bytes(text)); }

UserKey passphrase(std::string_view text) { return {KeyKind::kPassphrase, secret_of(text)}; }

NewKey cheap(UserKey key) { return {.key = std::move(key), .cost = kCheap}; }

std::string hex_of(const SecretKey& key) {
  std::string hex;
  for (const auto byte : key.bytes()) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[std::to_integer<unsigned>(byte) >> 4];
    hex += kDigits[std::to_integer<unsigned>(byte) & 15U];
  }
  return hex;
}

// The vectors of the reference implementation, version 0x13.
TEST(Argon2id, KnownAnswers) {
  const auto answer = [](const PassphraseCost& cost) {
    return hex_of(*stretch(base::as_bytes("password"), base::as_bytes("somesalt"), cost));
  };
  EXPECT_EQ(answer({.memory_kib = 256, .passes = 2, .lanes = 1}),
            "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe");
  EXPECT_EQ(answer({.memory_kib = 256, .passes = 2, .lanes = 2}),
            "6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037");
}

class KeySlotsTest : public testing::Test {
 protected:
  void add(const NewKey& key) {
    slots_.push_back(
        *seal_slot(key, static_cast<std::uint32_t>(slots_.size() + 1), 1764000000, master_, kId));
  }
  [[nodiscard]] bool opens(const UserKey& key, std::string_view id = kId) const {
    const auto opened = open_slots(slots_, key, id);
    if (!opened) {
      EXPECT_EQ(opened.error().code(), ErrorCode::kWrongKey);
    }
    return opened && opened->equals(master_);
  }

  SecretKey master_ = *SecretKey::random();
  std::vector<KeySlot> slots_;
};

TEST_F(KeySlotsTest, EachKindOpensItsSlot) {
  const UserKey file{KeyKind::kKeyFile, secret_of(std::string(40, 'f'))};
  const UserKey command{KeyKind::kCommand, secret_of("of a password manager")};
  const UserKey code{KeyKind::kRecovery, *make_recovery_code()};
  for (const auto& key : {passphrase("a"), file, command, code}) {
    slots_.clear();
    EXPECT_FALSE(opens(key));
    add(cheap(passphrase("another")));
    EXPECT_FALSE(opens(key));
    add(cheap(key));
    EXPECT_TRUE(opens(key));
    EXPECT_FALSE(opens(key, "10112233445566778899aabbccddeeff"));
    EXPECT_FALSE(opens(passphrase("b")));
  }
}

TEST_F(KeySlotsTest, EveryFlippedBitOfASlotClosesIt) {
  add(cheap(passphrase("a")));
  const auto sound = slots_.front();
  const auto flip = [](auto& bytes, std::size_t bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  };
  for (std::size_t bit = 0; bit < 8 * kKeyBytes; bit += 7) {
    slots_.front() = sound;
    flip(slots_.front().salt, bit);
    EXPECT_FALSE(opens(passphrase("a")));
    slots_.front() = sound;
    flip(slots_.front().commitment, bit);
    EXPECT_FALSE(opens(passphrase("a")));
    slots_.front() = sound;
    flip(slots_.front().sealed, bit);
    EXPECT_FALSE(opens(passphrase("a")));
    if (bit >= 8 * kTagBytes) continue;
    slots_.front() = sound;
    flip(slots_.front().tag, bit);
    EXPECT_FALSE(opens(passphrase("a")));
  }
  slots_.front() = sound;
  slots_.front().info.cost.passes = 2;
  EXPECT_FALSE(opens(passphrase("a")));
  slots_.front() = sound;
  slots_.front().info.kind = KeyKind::kCommand;
  EXPECT_FALSE(opens(passphrase("a")));
}

TEST_F(KeySlotsTest, TwoSlotsOfOneKeyShareNoByte) {
  add(cheap(passphrase("a")));
  add(cheap(passphrase("a")));
  EXPECT_NE(slots_[0].salt, slots_[1].salt);
  EXPECT_FALSE(is_authentic(slots_[0].commitment, slots_[1].commitment));
  EXPECT_NE(slots_[0].sealed, slots_[1].sealed);
}

// ---- A sealed text that opens under two keys. ----

using Block = std::bitset<128>;
using SealedKey = std::array<std::byte, kKeyBytes>;

Block block_of(std::span<const std::byte> bytes) {
  Block block;
  for (std::size_t bit = 0; bit < block.size(); ++bit) {
    block[bit] = (std::to_integer<unsigned>(bytes[bit / 8]) >> bit % 8 & 1U) != 0;
  }
  return block;
}

/// Returns two blocks: zeros, then `second`.
SealedKey ending_with(const Block& second) {
  SealedKey sealed{};
  for (std::size_t bit = 0; bit < second.size(); ++bit) {
    if (second[bit]) sealed[16 + bit / 8] |= static_cast<std::byte>(1U << bit % 8);
  }
  return sealed;
}

/// Returns the tag with which `sealed` opens.
Tag tag_of(const Aead& aead, std::span<const std::byte> associated, const SealedKey& sealed) {
  SealedKey stream{};
  static_cast<void>(aead.seal(nonce_of(0), associated, stream));
  for (std::size_t i = 0; i < stream.size(); ++i) stream[i] ^= sealed[i];
  const Tag tag = aead.seal(nonce_of(0), associated, stream);
  EXPECT_EQ(stream, sealed);
  return tag;
}

/// Returns a sealed text that has one tag under both keys. The difference of the two tags is linear
/// in the second block but for a constant, so Gauss finds the block that makes it zero.
SealedKey collision(const Aead& one, const Aead& other, std::span<const std::byte> associated) {
  const auto difference = [&](const Block& second) {
    const auto sealed = ending_with(second);
    return block_of(tag_of(one, associated, sealed)) ^ block_of(tag_of(other, associated, sealed));
  };
  const Block constant = difference(Block());
  std::array<Block, 128> rows;  // One for each bit of the tags.
  Block wanted = constant;
  for (std::size_t column = 0; column < 128; ++column) {
    const Block change = difference(Block().set(column)) ^ constant;
    for (std::size_t row = 0; row < 128; ++row) rows[row][column] = change[row];
  }
  for (std::size_t pivot = 0; pivot < 128; ++pivot) {
    std::size_t found = pivot;
    while (found < 127 && !rows[found][pivot]) ++found;
    EXPECT_TRUE(rows[found][pivot]);
    std::swap(rows[found], rows[pivot]);
    const bool bit = wanted[found];
    wanted[found] = wanted[pivot];
    wanted[pivot] = bit;
    for (std::size_t row = 0; row < 128; ++row) {
      if (row == pivot || !rows[row][pivot]) continue;
      rows[row] ^= rows[pivot];
      wanted[row] = wanted[row] != bit;
    }
  }
  return ending_with(wanted);
}

Aead sealing_of(const KeySlot& slot, std::string_view text) {
  const auto key = *stretch(base::as_bytes(text), slot.salt, slot.info.cost);
  return {Cipher::kAes256Gcm, *derive_key(key, slot.salt, "varve slot sealing")};
}

// Len, Grubbs, Ristenpart: Partitioning Oracle Attacks (USENIX Security 2021). Without the
// commitment, one opening would test all the passphrases that the attacker chose.
TEST_F(KeySlotsTest, ASlotForTwoPassphrasesOpensOnlyWithTheOneThatItCommitsTo) {
  KeySlot forged = *seal_slot(cheap(passphrase("first guess")), 1, 1764000000, master_, kId);
  std::string associated = "varve slot" + std::string(kId) + '\1';
  base::ByteWriter cost(associated);
  for (const auto part : {kCheap.memory_kib, kCheap.passes, kCheap.lanes}) cost.u32(part);
  const auto bound = base::as_bytes(associated);
  const auto first = sealing_of(forged, "first guess");
  const auto second = sealing_of(forged, "second guess");
  forged.sealed = collision(first, second, bound);
  forged.tag = tag_of(first, bound, forged.sealed);
  for (const auto* const aead : {&first, &second}) {
    auto text = forged.sealed;
    EXPECT_TRUE(aead->open(nonce_of(0), bound, text, forged.tag));
  }
  slots_ = {forged};
  const auto refusal = [&](std::string_view text) {
    const auto opened = open_slots(slots_, passphrase(text), kId);
    return opened ? std::string("opened") : opened.error().message();
  };
  EXPECT_EQ(refusal("first guess"), "opened");
  EXPECT_EQ(refusal("second guess"), refusal("no guess"));
  EXPECT_FALSE(opens(passphrase("second guess")));
  slots_.front().commitment.fill(std::byte{0});
  EXPECT_EQ(refusal("first guess"), refusal("no guess"));
}

KeySlot slot_of_cost(std::uint32_t number, std::uint32_t memory_kib, std::uint32_t passes) {
  KeySlot slot;
  slot.info = {.number = number, .cost = {memory_kib, passes, 4}};
  return slot;
}

std::vector<std::uint32_t> numbers_of(const SlotTries& tries) {
  std::vector<std::uint32_t> numbers;
  for (const auto* const slot : tries.slots) numbers.push_back(slot->info.number);
  return numbers;
}

TEST(SlotTries, OfEightForgedSlotsCostNoMoreThanOne) {
  std::vector<KeySlot> forged;
  for (std::uint32_t i = 1; i <= kKeySlotsMax; ++i) {
    forged.push_back(slot_of_cost(i, 1U << 20, 16));
  }
  ASSERT_TRUE(check_cost(forged.front().info.cost));
  const auto tries = slots_to_try(forged, kTriedCostMax);
  EXPECT_EQ(numbers_of(tries), std::vector<std::uint32_t>{1});
  EXPECT_EQ(tries.left_out, 7U);
  EXPECT_FALSE(check_total_cost(forged));
  for (auto& slot : forged) slot.info.cost.passes = 2;
  EXPECT_EQ(slots_to_try(forged, kTriedCostMax).left_out, 0U);
  EXPECT_TRUE(check_total_cost(forged));
}

TEST(SlotTries, BeginWithTheCheapest) {
  std::vector<KeySlot> slots = {slot_of_cost(1, 1024, 9), slot_of_cost(2, 4096, 2),
                                slot_of_cost(3, 64, 1), slot_of_cost(4, 8192, 1),
                                slot_of_cost(5, 0, 0)};
  slots.back().info.kind = KeyKind::kKeyFile;
  EXPECT_EQ(numbers_of(slots_to_try(slots, kTriedCostMax)),
            (std::vector<std::uint32_t>{3, 2, 4, 1}));
  const auto tries = slots_to_try(slots, 64 + 8192);
  EXPECT_EQ(numbers_of(tries), (std::vector<std::uint32_t>{3, 2}));
  EXPECT_EQ(tries.left_out, 2U);
}

TEST_F(KeySlotsTest, TriesEndWhereTheyWouldCostTooMuch) {
  const auto costing = [](std::string_view text, std::uint32_t memory_kib) {
    return NewKey{.key = passphrase(text), .cost = {memory_kib, 1, 1}};
  };
  add(costing("dear", 64));
  add(costing("cheap", 16));
  add(costing("middling", 32));
  const auto opens_within = [&](UserKey key, std::uint64_t cost_max) {
    return open_slots(slots_, key, kId, cost_max).has_value();
  };
  EXPECT_TRUE(opens_within(passphrase("cheap"), 16));
  EXPECT_FALSE(opens_within(passphrase("middling"), 47));
  EXPECT_TRUE(opens_within(passphrase("middling"), 48));
  EXPECT_TRUE(opens_within(passphrase("dear"), 112));
  const auto refused = open_slots(slots_, passphrase("dear"), kId, 111);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kWrongKey);
  EXPECT_NE(refused.error().message().find("VARVE_KEY_SLOT"), std::string::npos);

  auto named = passphrase("dear");
  named.slot = 1;
  EXPECT_TRUE(opens_within(named, 0));
  for (const std::uint32_t other : {2U, 3U, 4U}) {
    named.slot = other;
    EXPECT_FALSE(opens(named)) << other;
  }
}

TEST_F(KeySlotsTest, AnAbsurdCostIsRefusedBeforeItTakesMemory) {
  for (const PassphraseCost& cost :
       {PassphraseCost{(1U << 20) + 1, 1, 1}, PassphraseCost{4294967295U, 1, 1},
        PassphraseCost{64, 17, 1}, PassphraseCost{64, 0, 1}, PassphraseCost{1024, 1, 17},
        PassphraseCost{64, 1, 0}, PassphraseCost{31, 1, 4}}) {
    EXPECT_FALSE(check_cost(cost));
    EXPECT_FALSE(stretch(base::as_bytes("a"), base::as_bytes("saltsalt"), cost));
    NewKey key = cheap(passphrase("a"));
    key.cost = cost;
    EXPECT_FALSE(seal_slot(key, 1, 0, master_, kId));
  }
}

TEST_F(KeySlotsTest, WeakKeysAreRefused) {
  const auto refused = [&](UserKey key) {
    const auto slot = seal_slot(cheap(std::move(key)), 1, 0, master_, kId);
    return !slot && slot.error().code() == ErrorCode::kInvalid;
  };
  EXPECT_TRUE(refused({KeyKind::kPassphrase, Secret()}));
  EXPECT_TRUE(refused({KeyKind::kKeyFile, secret_of(std::string(31, 'f'))}));
  EXPECT_TRUE(refused({KeyKind::kRecovery, secret_of("ABCDE-FGHJK")}));
  NewKey labelled = cheap(passphrase("a"));
  for (const auto& label : {std::string("two\nlines"), std::string(65, 'x')}) {
    labelled.label = label;
    EXPECT_FALSE(seal_slot(labelled, 1, 0, master_, kId));
  }
}

TEST_F(KeySlotsTest, ARecoveryCodeOpensWherePassphrasesDo) {
  const auto code = *make_recovery_code();
  std::string text(base::as_text(code.bytes()));
  EXPECT_EQ(text.size(), 41U);
  for (std::size_t i = 5; i < text.size(); i += 6) EXPECT_EQ(text[i], '-');
  add({.key = {KeyKind::kRecovery, code}});
  EXPECT_TRUE(opens(passphrase(text)));
  std::string typed;
  for (const char c : text) {
    typed += c == '-'   ? (typed.size() % 4 == 1 ? '\t' : ' ')
             : c == '0' ? 'o'
             : c == '1' ? 'l'
                        : static_cast<char>(std::tolower(c));
  }
  EXPECT_TRUE(opens(passphrase(typed)));
}

TEST(RecoveryCode, EachWrongCharacterIsSeen) {
  const auto code = *make_recovery_code();
  const std::string text(base::as_text(code.bytes()));
  int accepted = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '-') continue;
    std::string typed = text;
    typed[i] = typed[i] == 'A' ? 'B' : 'A';
    accepted += static_cast<int>(parse_recovery_code(base::as_bytes(typed))->has_value());
    EXPECT_FALSE(parse_recovery_code(base::as_bytes(text.substr(0, i)))->has_value()) << i;
  }
  // Each has a chance of 1 in 32,768.
  EXPECT_LE(accepted, 1);
  EXPECT_FALSE(parse_recovery_code(base::as_bytes(text + "A"))->has_value());
  EXPECT_TRUE(parse_recovery_code(base::as_bytes(text))->has_value());
}

}  // namespace
}  // namespace varve::crypto
