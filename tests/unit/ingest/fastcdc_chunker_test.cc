// SPDX-License-Identifier: Apache-2.0
#include "ingest/fastcdc_chunker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "support/chunker_test_data.h"

namespace varve::ingest {
namespace {

using test::Bytes;

std::size_t cut_byte_by_byte(const FastCdcChunker& chunker, const Bytes& data) {
  const auto sizes = chunker.sizes();
  const std::size_t end = std::min<std::size_t>(sizes.max, data.size());
  std::uint64_t hash = 0;
  for (std::size_t i = sizes.min; i < end; ++i) {
    hash = chunker.roll(hash, data[i]);
    if ((hash & (i < sizes.avg ? chunker.strong_mask() : chunker.loose_mask())) == 0) return i + 1;
  }
  return end;
}

TEST(FastCdcChunker, TwoBytesAStepCutAsOneByteAStep) {
  for (const auto sizes : test::kAllSizes) {
    const FastCdcChunker chunker(sizes);
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const std::size_t length = sizes.max - 17 * (seed % 60);  // Odd ends and even ones.
      const Bytes random = test::random_bytes(length, seed);
      ASSERT_EQ(chunker.next(random), cut_byte_by_byte(chunker, random)) << seed;
      const Bytes text = test::text_bytes(length, seed);
      ASSERT_EQ(chunker.next(text), cut_byte_by_byte(chunker, text)) << seed;
    }
  }
}

TEST(FastCdcChunker, MasksHaveTwoBitsMoreAndTwoBitsFewerThanTheAverage) {
  const FastCdcChunker chunker({2048, 8192, 65536});
  EXPECT_EQ(std::popcount(chunker.strong_mask()), 15);
  EXPECT_EQ(std::popcount(chunker.loose_mask()), 11);
}

}  // namespace
}  // namespace varve::ingest
