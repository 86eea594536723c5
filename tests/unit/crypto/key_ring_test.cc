// SPDX-License-Identifier: Apache-2.0
#include "crypto/key_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace varve::crypto {
namespace {

SecretKey numbered_key(int number) {
  std::array<std::byte, kKeyBytes> bytes{};
  bytes.front() = static_cast<std::byte>(number);
  return *SecretKey::copy_of(bytes);
}

std::string text_of(const SecretKey& key) {
  return {reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()};
}

std::shared_ptr<const KeyRing> ring(int master, const std::string& id) {
  return *KeyRing::make(numbered_key(master), id, Cipher::kAes256Gcm);
}

TEST(KeyRing, EachPurposeMasterAndRepositoryHasItsOwnKey) {
  std::set<std::string> seen;
  for (const int master : {1, 2}) {
    for (const std::string id : {"00", "01"}) {
      const auto keys = ring(master, id);
      for (int i = 0; i <= static_cast<int>(Purpose::kHeads); ++i) {
        EXPECT_TRUE(seen.insert(text_of(keys->key(static_cast<Purpose>(i)))).second);
      }
    }
  }
}

TEST(KeyRing, SameInputsGiveTheSameKeys) {
  for (int i = 0; i <= static_cast<int>(Purpose::kHeads); ++i) {
    EXPECT_TRUE(ring(1, "00")
                    ->key(static_cast<Purpose>(i))
                    .equals(ring(1, "00")->key(static_cast<Purpose>(i))));
  }
}

TEST(KeyRing, ATextOpensOnlyWithItsPurposeAndSalt) {
  const auto keys = ring(1, "00");
  auto salt = *keys->nonces().new_salt({});
  const std::vector<std::byte> text(100, std::byte{5});
  auto sealed = text;
  const auto seal = *keys->salted(Purpose::kFiles, salt)->seal({}, sealed);
  std::vector<std::byte> out(text.size());
  const auto opens = [&](Purpose purpose) {
    const std::span<const std::byte> bytes(sealed);
    return keys->salted(purpose, salt)->open(seal, {}, bytes, out);
  };
  EXPECT_FALSE(opens(Purpose::kStaging));
  EXPECT_TRUE(opens(Purpose::kFiles));
  EXPECT_EQ(out, text);
  salt.back() ^= std::byte{1};
  EXPECT_FALSE(opens(Purpose::kFiles));
}

TEST(SecretKey, RandomKeysDifferAndCopiesAreEqual) {
  const auto key = *SecretKey::random();
  EXPECT_FALSE(key.equals(*SecretKey::random()));
  EXPECT_TRUE(key.equals(*SecretKey::copy_of(key.bytes())));
}

}  // namespace
}  // namespace varve::crypto
