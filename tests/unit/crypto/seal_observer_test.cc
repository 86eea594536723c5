// SPDX-License-Identifier: Apache-2.0
#include "crypto/seal_observer.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>

namespace varve::crypto {
namespace {

// An observer is a plain function, so what it sees is in a variable of the file.
std::set<std::pair<decltype(SealedText::key), Nonce>> seen;
std::size_t texts = 0;

void see(const SealedText& sealed) {
  seen.emplace(sealed.key, sealed.nonce);
  ++texts;
}

TEST(SealObserver, SeesEachPairOfKeyAndNonce) {
  const Aead one(Cipher::kAes256Gcm, *SecretKey::random());
  const Aead other(Cipher::kAes256Gcm, *SecretKey::random());
  std::array<std::byte, 8> text{};
  observe_seals(see);
  (void)one.seal(nonce_of(1), {}, text);
  (void)one.seal(nonce_of(2), {}, text);
  (void)other.seal(nonce_of(1), {}, text);
  EXPECT_EQ(seen.size(), 3U);
  (void)one.seal(nonce_of(1), {}, text);
  EXPECT_EQ(seen.size(), 3U);  // The pair was there: a program must not do that.
  observe_seals(nullptr);
  (void)one.seal(nonce_of(3), {}, text);
  EXPECT_EQ(texts, 4U);
}

}  // namespace
}  // namespace varve::crypto
