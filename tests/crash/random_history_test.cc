// SPDX-License-Identifier: Apache-2.0
// No two texts that Varve seals may have the same key and nonce: over a whole history of an
// encrypted repository and its copy, with crashes that take back what was not synced.
//
// VARVE_TEST_STEPS=N sets the length of the history, VARVE_TEST_SEED=N chooses another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "random_history.h"
#include "sealed_pairs.h"

namespace varve::test {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

TEST(RandomHistory, NoKeyAndNonceSealTwoTexts) {
  const auto seed = number_from("VARVE_TEST_SEED", 1);
  const auto steps = number_from("VARVE_TEST_STEPS", 500);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const SealedPairs pairs;
  RandomHistory history(seed);
  history.run(steps);
  std::printf("%s\n", history.counts().c_str());
  for (const char* kind : {"write", "write out of order", "seal", "clone", "arrange", "crash"}) {
    EXPECT_GT(history.count(kind), 0U) << kind;
  }

  const auto counts = pairs.counts();
  std::printf("%llu texts under %llu keys; at most %llu random and %llu counted nonces a key\n",
              static_cast<unsigned long long>(counts.texts),
              static_cast<unsigned long long>(counts.keys),
              static_cast<unsigned long long>(counts.random_per_key),
              static_cast<unsigned long long>(counts.counted_per_key));
  EXPECT_GT(counts.texts, 5 * steps);
  EXPECT_GT(counts.keys, steps / 4);
  EXPECT_EQ(counts.repeated, 0U) << "a key and nonce was used twice, with the seed " << seed;
  EXPECT_EQ(counts.mixed_keys, 0U);
  // docs/ENCRYPTION.md, "Nonces". A step seals far less than 10,000 values.
  constexpr std::uint64_t kRandomMax = std::uint64_t{1} << 32;
  EXPECT_LT(counts.random_per_key, std::min(kRandomMax, 10'000 * steps));
}

// Proves that the test above can fail.
TEST(SealedPairs, CountsATextThatRepeatsAKeyAndNonce) {
  const SealedPairs pairs;
  crypto::SealedText text;
  const auto see = [&](int key, std::uint64_t nonce) {
    text.key.fill(static_cast<std::byte>(key));
    text.nonce = crypto::nonce_of(nonce);
    SealedPairs::see(text);
  };
  see(1, 0);
  see(1, 1);
  see(2, 0);
  EXPECT_EQ(pairs.counts().repeated, 0U);
  EXPECT_EQ(pairs.counts().keys, 2U);
  see(1, 1);  // As by a counter that a crash took back.
  EXPECT_EQ(pairs.counts().repeated, 1U);
  EXPECT_EQ(pairs.counts().mixed_keys, 0U);
  see(2, std::uint64_t{1} << 40);
  EXPECT_EQ(pairs.counts().mixed_keys, 1U);
  EXPECT_EQ(pairs.counts().random_per_key, 1U);
}

}  // namespace
}  // namespace varve::test
