// SPDX-License-Identifier: Apache-2.0
#include "crypto/key_slots.h"

#include <gtest/gtest.h>

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
  EXPECT_NE(slots_[0].sealed, slots_[1].sealed);
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
    typed += c == '-' ? ' ' : c == '0' ? 'o' : c == '1' ? 'l' : static_cast<char>(std::tolower(c));
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
