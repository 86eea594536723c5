// SPDX-License-Identifier: Apache-2.0
#include "format/superblock.h"
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/coding.h"
#include "format/container.h"
#include "format/key_slot_text.h"

namespace varve::format {
namespace {

Superblock sample_superblock() {
  Superblock superblock;
  superblock.repository_id = "00112233445566778899aabbccddeeff";
  return superblock;
}

// The text with one part replaced, under a right checksum.
std::string forged(std::string_view part, std::string_view by) {
  std::string text = encode_superblock(sample_superblock());
  text.resize(text.rfind("checksum"));
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, part.size(), by);
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  const std::uint64_t sum = base::checksum64(base::as_bytes(text));
  for (int shift = 60; shift >= 0; shift -= 4) hex += kDigits[(sum >> shift) & 15];
  return text + "checksum = " + hex + "\n";
}

Error error_of(const std::string& text) {
  const auto superblock = decode_superblock(text);
  return superblock ? Error(ErrorCode::kInterrupted, "it was accepted") : superblock.error();
}

TEST(Superblock, RoundTrips) {
  Superblock superblock = sample_superblock();
  superblock.parameters.chunk_bytes_avg = 4096;
  superblock.parameters.chunk_bytes_min = 1024;
  superblock.parameters.chunk_bytes_max = 32768;
  superblock.parameters.chunker = "fastcdc2020";
  superblock.parameters.zstd_level = 7;
  const auto back = decode_superblock(encode_superblock(superblock));
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(back->format_version, kFormatVersion);
  EXPECT_EQ(back->repository_id, superblock.repository_id);
  EXPECT_EQ(back->parameters.placement, Placement::kLineage);
  EXPECT_EQ(back->parameters.chunker, "fastcdc2020");
  EXPECT_EQ(back->parameters.chunk_bytes_min, 1024U);
  EXPECT_EQ(back->parameters.chunk_bytes_avg, 4096U);
  EXPECT_EQ(back->parameters.chunk_bytes_max, 32768U);
  EXPECT_EQ(back->parameters.codec, Codec::kZstd);
  EXPECT_EQ(back->parameters.zstd_level, 7);
  EXPECT_EQ(encode_superblock(*back), encode_superblock(superblock));
}

TEST(Superblock, WithoutCompressionRoundTrips) {
  Superblock superblock = sample_superblock();
  superblock.parameters.codec = Codec::kNone;
  const auto back = decode_superblock(encode_superblock(superblock));
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(back->parameters.codec, Codec::kNone);
}

TEST(Superblock, EveryChangedByteReturnsCorrupt) {
  std::string text = encode_superblock(sample_superblock());
  for (auto& c : text) {
    const char was = c;
    for (int value = 0; value < 256; ++value) {
      c = static_cast<char>(value);
      if (c == was) continue;
      ASSERT_EQ(error_of(text).code(), ErrorCode::kCorrupt);
    }
    c = was;
  }
}

TEST(Superblock, EveryTruncationReturnsCorruptAndNamesTheFile) {
  const std::string text = encode_superblock(sample_superblock());
  for (std::size_t n = 0; n < text.size(); ++n) {
    const Error error = error_of(text.substr(0, n));
    ASSERT_EQ(error.code(), ErrorCode::kCorrupt) << n;
    ASSERT_NE(error.message().find("varve.repo"), std::string::npos);
  }
  EXPECT_EQ(error_of(text + "\n").code(), ErrorCode::kCorrupt);
}

TEST(Superblock, NewerFormatReturnsUnsupported) {
  const Error error = error_of(forged("format_version = 1", "format_version = 2"));
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_NE(error.message().find("format 2"), std::string::npos);
}

TEST(Superblock, UnknownThingsReturnUnsupported) {
  const auto code = [](std::string_view part, std::string_view by) {
    return error_of(forged(part, by)).code();
  };
  EXPECT_EQ(code("profile = lineage", "profile = forest"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("features_required = none", "features_required = tides"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("features_required = none", "features_required = pool tides"),
            ErrorCode::kUnsupported);
  EXPECT_EQ(code("zstd:1", "lz4"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("zstd:1", "zstd"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("zstd:1", "none:1"), ErrorCode::kUnsupported);
}

TEST(Superblock, UnknownFeaturesAreNamedInTheMessage) {
  const Error error = error_of(forged("= none", "= tides pool ice"));
  EXPECT_NE(error.message().find("`tides ice`"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("use a newer Varve"), std::string::npos) << error.message();
}

TEST(Superblock, ThePoolsFeatureIsKnown) {
  Superblock superblock = sample_superblock();
  EXPECT_FALSE(superblock.needs_pool);
  superblock.needs_pool = true;
  const std::string text = encode_superblock(superblock);
  EXPECT_NE(text.find("\nfeatures_required = pool\n"), std::string::npos) << text;
  const auto back = decode_superblock(text);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_TRUE(back->needs_pool);
  EXPECT_FALSE(decode_superblock(encode_superblock(sample_superblock()))->needs_pool);
}

TEST(Superblock, PartsOfLabelsAreAFeatureOfTheirOwn) {
  Superblock superblock = sample_superblock();
  superblock.needs_label_parts = true;
  const std::string text = encode_superblock(superblock);
  EXPECT_NE(text.find("\nfeatures_required = label-parts\n"), std::string::npos) << text;
  const auto back = decode_superblock(text);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_TRUE(back->needs_label_parts);
}

TEST(Superblock, AliasesAreAFeatureOfTheirOwn) {
  Superblock superblock = sample_superblock();
  superblock.needs_pool = true;
  superblock.needs_aliases = true;
  const std::string text = encode_superblock(superblock);
  EXPECT_NE(text.find("\nfeatures_required = pool pool-aliases\n"), std::string::npos) << text;
  const auto back = decode_superblock(text);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_TRUE(back->needs_pool && back->needs_aliases);
  superblock.needs_pool = false;
  const auto alone = decode_superblock(encode_superblock(superblock));
  ASSERT_TRUE(alone.has_value());
  EXPECT_TRUE(!alone->needs_pool && alone->needs_aliases);
}

TEST(Superblock, UnknownKeysAreKept) {
  const auto superblock =
      decode_superblock(forged("profile", "zeal = 9\ncomment = hello = you\nprofile"));
  ASSERT_TRUE(superblock.has_value()) << superblock.error().message();
  const std::string text = encode_superblock(*superblock);
  EXPECT_NE(text.find("\ncomment = hello = you\nzeal = 9\nchecksum"), std::string::npos) << text;
  const auto back = decode_superblock(text);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(encode_superblock(*back), text);
}

TEST(Superblock, UnknownPlacementIsNamedInTheMessage) {
  const Error error = error_of(forged("profile = lineage", "profile = forest"));
  EXPECT_NE(error.message().find("`forest`"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("use a newer Varve"), std::string::npos) << error.message();
}

TEST(Superblock, MalformedFieldsReturnCorrupt) {
  const auto code = [](std::string_view part, std::string_view by) {
    return error_of(forged(part, by)).code();
  };
  EXPECT_EQ(code("chunk_bytes_avg = 8192\n", ""), ErrorCode::kCorrupt);
  EXPECT_EQ(code("chunk_bytes_avg = 8192", "chunk_bytes_avg = 8192x"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("chunk_bytes_avg = 8192", "chunk_bytes_avg = -1"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("chunk_bytes_avg = 8192", "chunk_bytes_avg"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("chunk_bytes_min", "chunk_bytes_max"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("zstd:1", "zstd:20"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("zstd:1", "zstd:"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("zstd:1", "zstd:0"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("zstd:1", "zstd:1x"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("zstd:1", "zstd:-1"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("= none", "= "), ErrorCode::kCorrupt);
  EXPECT_EQ(code("= none", "= pool "), ErrorCode::kCorrupt);
  EXPECT_EQ(code("= none", "= pool pool"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("= none", "= ice  pool"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("repository_id = 00", "repository_id = 0"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("repository_id = 00", "repository_id = 0G"), ErrorCode::kCorrupt);
}

// ---- Encrypted repositories. ----

crypto::KeySlot sample_slot(KeyKind kind, std::uint32_t number) {
  crypto::KeySlot slot;
  slot.info = {.number = number, .kind = kind, .created_s = 1764000000};
  if (!crypto::is_guessable(kind)) slot.info.cost = {0, 0, 0};
  slot.salt.fill(std::byte{0xa0});
  slot.commitment.fill(std::byte{0xd3});
  slot.sealed.fill(std::byte{0xb1});
  slot.tag.fill(std::byte{0xc2});
  return slot;
}
Superblock encrypted_superblock() {
  auto superblock = sample_superblock();
  superblock.encryption.emplace();
  superblock.encryption->key_counter = 7;
  superblock.encryption->slots = {sample_slot(KeyKind::kPassphrase, 2),
                                  sample_slot(KeyKind::kKeyFile, 10)};
  superblock.encryption->slots[1].info.label = "the laptop";
  superblock.information = "zone = here\n";
  return superblock;
}
std::shared_ptr<const crypto::KeyRing> sample_keys(std::uint8_t fill = 1) {
  std::array<std::byte, crypto::kKeyBytes> master{};
  master.fill(std::byte{fill});
  return *crypto::KeyRing::make(*crypto::SecretKey::copy_of(master),
                                sample_superblock().repository_id, crypto::Cipher::kAes256Gcm);
}

TEST(EncryptedSuperblock, HasTheLinesOfThePage) {
  std::string salt;
  for (int i = 0; i < 32; ++i) salt += "a0";
  std::string sealed;
  for (int i = 0; i < 32; ++i) sealed += "d3";
  sealed += " ";
  for (int i = 0; i < 32; ++i) sealed += "b1";
  for (int i = 0; i < 16; ++i) sealed += "c2";
  const auto text = encode_superblock(encrypted_superblock(), sample_keys().get());
  const auto begin = text.find("features_required");
  const auto end = text.find("authentication = ");
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(text.substr(begin, end - begin),
            "features_required = encryption\nencryption = aes-256-gcm\nkey_counter = 7\n"
            "key_slot_2 = passphrase 1764000000 argon2id:65536:3:4 " +
                salt + " " + sealed + "\nkey_slot_10 = key-file 1764000000 hkdf " + salt + " " +
                sealed + " the laptop\nzone = here\n");
  EXPECT_EQ(text.find('\n', end) - end, std::string("authentication = ").size() + 64);
}

TEST(EncryptedSuperblock, RoundTripsAndIsAuthentic) {
  const auto keys = sample_keys();
  const auto text = encode_superblock(encrypted_superblock(), keys.get());
  const auto back = decode_superblock(text);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(encode_superblock(*back, keys.get()), text);
  EXPECT_TRUE(authenticate_superblock(text, *keys));
  EXPECT_FALSE(authenticate_superblock(text, *sample_keys(2)));
}

TEST(EncryptedSuperblock, ACopyForLabelsHasNoSlots) {
  const auto text = encode_superblock(encrypted_superblock());
  EXPECT_EQ(text.find("key_slot_"), std::string::npos);
  EXPECT_EQ(text.find("authentication"), std::string::npos);
  const auto back = decode_superblock(text);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(encode_superblock(*back), text);
  EXPECT_FALSE(authenticate_superblock(text, *sample_keys()));
}

TEST(EncryptedSuperblock, MalformedSlotsReturnCorrupt) {
  const auto sound = encode_key_slot(sample_slot(KeyKind::kPassphrase, 1));
  ASSERT_TRUE(decode_key_slot(1, sound).has_value());
  const auto refused = [&](std::string_view part, std::string_view by) {
    std::string text = sound;
    text.replace(text.find(part), part.size(), by);
    return !decode_key_slot(1, text).has_value();
  };
  EXPECT_TRUE(refused("passphrase", "passport"));
  EXPECT_TRUE(refused("1764000000", "01764000000"));
  EXPECT_TRUE(refused("argon2id:65536:3:4", "hkdf"));
  EXPECT_TRUE(refused(":65536:", ":1048577:"));
  EXPECT_TRUE(refused(":65536:", ":4294967297:"));
  EXPECT_TRUE(refused(":65536:", ":18446744073709551616:"));
  EXPECT_TRUE(refused(":65536:", ":31:"));
  EXPECT_TRUE(refused(":65536:", ":0:"));
  EXPECT_TRUE(refused(":65536:", ":-1:"));
  EXPECT_TRUE(refused(":65536:", "::"));
  EXPECT_TRUE(refused(":3:4", ":0:4"));
  EXPECT_TRUE(refused(":3:4", ":3:0"));
  EXPECT_TRUE(refused(":3:4", ":3"));
  EXPECT_TRUE(refused(":3:4", ":3:4:5"));
  EXPECT_TRUE(refused(":3:4", ":17:4"));
  EXPECT_TRUE(refused(":3:4", ":3:17"));
  EXPECT_TRUE(refused(":3:4", ":0:4"));
  EXPECT_TRUE(refused("a0a0", "A0a0"));
  EXPECT_TRUE(refused("a0a0", "a0a"));
  EXPECT_TRUE(refused("d3d3", "d3d"));
  EXPECT_TRUE(refused(" d3d3", "d3d3"));
  EXPECT_TRUE(refused("c2c2", "c2c2c2"));
  EXPECT_TRUE(refused(" argon2id", "  argon2id"));
  EXPECT_FALSE(decode_key_slot(1, sound + " " + std::string(65, 'x')).has_value());
}

// Both were computed with Python from docs/FORMAT.md.
TEST(EncryptedSuperblock, SlotsOfAnotherProgramOpen) {
  const std::string salt = " a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf ";
  const auto opens = [&](const std::string& text, KeyKind kind, std::string_view secret) {
    const auto slot = decode_key_slot(1, text);
    if (!slot) return std::string("malformed");
    const auto master =
        crypto::open_slots({*slot}, {kind, *Secret::copy_of(base::as_bytes(secret))},
                           "00112233445566778899aabbccddeeff");
    return master ? hex_text(master->bytes()) : master.error().message();
  };
  std::string master;
  for (int i = 0x20; i < 0x40; ++i) master += hex_text(std::array{static_cast<std::byte>(i)});
  EXPECT_EQ(opens("key-file 1764000000 hkdf" + salt +
                      "2499dc525fdca44e565a8338247d66053ad3d33b89e895542e5f2f84b673b881 "
                      "8210b3f09f00db1b96dfe0a57fece4efee0d165894eedafb90cf0a4a26296e0f"
                      "afd1a3effb762c5726d69d8ba74a32a0",
                  KeyKind::kKeyFile, std::string(32, 'f')),
            master);
  EXPECT_EQ(opens("passphrase 1764000000 argon2id:16:1:2" + salt +
                      "25d60caeb294a0d19f61a3ca3c3cd39d2b5c2e3adfec72be53e5e2cee34ed90c "
                      "4cc3242997d8e26c5d63f70597216f8ddc3ad7d060c094a75240b49ec21750df"
                      "ea5f441eb9fb8a14283d74ff84c39da5",
                  KeyKind::kPassphrase, "correct horse"),
            master);
}

TEST(EncryptedSuperblock, MoreSlotsThanTheLimitReturnCorrupt) {
  auto superblock = encrypted_superblock();
  const auto with_slots = [&](std::size_t count) {
    superblock.encryption->slots.assign(count, sample_slot(KeyKind::kPassphrase, 1));
    for (std::size_t i = 0; i < count; ++i) {
      superblock.encryption->slots[i].info.number = static_cast<std::uint32_t>(i + 1);
    }
    return encode_superblock(superblock, sample_keys().get());
  };
  EXPECT_TRUE(decode_superblock(with_slots(kKeySlotsMax)).has_value());
  EXPECT_EQ(error_of(with_slots(kKeySlotsMax + 1)).code(), ErrorCode::kCorrupt);
}

TEST(Superblock, LevelMayHaveLeadingZeros) {
  const auto superblock = decode_superblock(forged("zstd:1", "zstd:007"));
  ASSERT_TRUE(superblock.has_value()) << superblock.error().message();
  EXPECT_EQ(superblock->parameters.zstd_level, 7);
}

TEST(Superblock, UnknownKeyIsInformation) {
  EXPECT_TRUE(decode_superblock(forged("profile", "comment = hello\nprofile")).has_value());
}

TEST(Superblock, OtherFilesReturnCorrupt) {
  EXPECT_EQ(error_of("").code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of("# something else\n").code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of(std::string(1U << 20, 'x')).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::format
