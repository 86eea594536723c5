// SPDX-License-Identifier: Apache-2.0
#include "series/known_elsewhere.h"

#include <gtest/gtest.h>

#include <cstring>

namespace varve::series {
namespace {

Fingerprint fingerprint_of(std::uint64_t content) {
  Fingerprint fingerprint{};
  std::memcpy(fingerprint.data(), &content, sizeof content);
  return fingerprint;
}

// A chunk that was forgotten within its lookup would not be promoted.
TEST(KnownElsewhere, KeepsAllOfALookupWithinItsBound) {
  KnownElsewhere known;
  std::uint64_t next = 0;
  for (const std::size_t lookup : {1U, 500U, 3000U}) {
    for (std::size_t i = 0; i < 2 * KnownElsewhere::kMax / lookup; ++i) {
      const auto first = next;
      known.begin_lookup(lookup);
      for (std::size_t j = 0; j < lookup; ++j) known.add(fingerprint_of(next++));
      for (auto one = first; one < next; ++one) {
        if (!known.contains(fingerprint_of(one))) FAIL() << one << " of " << first;
      }
      ASSERT_LE(known.size(), KnownElsewhere::kMax);
    }
  }
  EXPECT_FALSE(known.contains(fingerprint_of(next)));
  EXPECT_FALSE(known.contains(fingerprint_of(0)));
}

}  // namespace
}  // namespace varve::series
