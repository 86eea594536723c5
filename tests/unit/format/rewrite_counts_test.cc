// SPDX-License-Identifier: Apache-2.0
#include "format/rewrite_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "base/coding.h"
#include "support/temp_repository.h"

namespace varve::format {
namespace {

using varve::test::code_of;
using varve::test::must;

std::string record_of(const std::array<std::uint64_t, 7>& fields) {
  std::string out;
  base::ByteWriter w(out);
  for (const auto field : fields) w.varint(field);
  return out;
}

TEST(RewriteCountsRecord, RoundTripsAnyCounts) {
  std::mt19937_64 random(1);
  const auto count = [&](std::uint64_t most) {
    return random() % 3 == 0 ? 0 : std::min((random() >> (random() % 64)) & kCountMax, most);
  };
  for (int round = 0; round < 1000; ++round) {
    RewriteCounts counts;
    for (auto [chunks, bytes] : {std::pair(&counts.kept_chunks, &counts.kept_bytes),
                                 std::pair(&counts.rewritten_chunks, &counts.rewritten_bytes),
                                 std::pair(&counts.promoted_chunks, &counts.promoted_bytes)}) {
      *bytes = count(kCountMax);
      *chunks = *bytes == 0 ? 0 : std::max<std::uint64_t>(1, count(*bytes));
    }
    counts.sparse_containers = count(kCountMax);
    EXPECT_EQ(must(decode_rewrite_counts(encode_rewrite_counts(counts))), counts);
  }
}

TEST(RewriteCountsRecord, GreaterCountsAreStoredAsTheHighest) {
  const RewriteCounts counts{~0ULL, ~0ULL, 3, ~0ULL, kCountMax, kCountMax, kCountMax + 1};
  const RewriteCounts expected{kCountMax, kCountMax, 3, kCountMax, kCountMax, kCountMax, kCountMax};
  EXPECT_EQ(must(decode_rewrite_counts(encode_rewrite_counts(counts))), expected);
}

// Any other bytes are refused, or they are counts that a version may have.
TEST(RewriteCountsRecord, DamagedBytesAreRefusedOrMeanCounts) {
  const auto good = encode_rewrite_counts({300, 1ULL << 40, 20, 150000, 16, 70000, 12});
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_EQ(code_of(decode_rewrite_counts(good.substr(0, n))), ErrorCode::kCorrupt) << n;
  }
  EXPECT_EQ(code_of(decode_rewrite_counts(good + '\0')), ErrorCode::kCorrupt);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      auto bad = good;
      bad[at] = static_cast<char>(value);
      const auto decoded = decode_rewrite_counts(bad);
      if (!decoded) {
        EXPECT_EQ(decoded.error().code(), ErrorCode::kCorrupt);
        continue;
      }
      EXPECT_LE(decoded->kept_chunks, decoded->kept_bytes);
      EXPECT_LE(decoded->kept_bytes, kCountMax);
      EXPECT_EQ(decoded->rewritten_chunks == 0, decoded->rewritten_bytes == 0);
    }
  }
  for (const auto& fields :
       std::array<std::array<std::uint64_t, 7>, 8>{{{1, 0, 0, 0, 0, 0, 0},
                                                    {0, 1, 0, 0, 0, 0, 0},
                                                    {2, 1, 0, 0, 0, 0, 0},
                                                    {0, 0, 3, 2, 0, 0, 0},
                                                    {0, 0, 0, 0, 1, 0, 0},
                                                    {1, kCountMax + 1, 0, 0, 0, 0, 0},
                                                    {0, 0, 1, ~0ULL, 0, 0, 0},
                                                    {0, 0, 0, 0, 0, 0, kCountMax + 1}}}) {
    EXPECT_EQ(code_of(decode_rewrite_counts(record_of(fields))), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(must(decode_rewrite_counts(record_of({0, 0, 0, 0, 0, 0, 0}))), RewriteCounts());
}

}  // namespace
}  // namespace varve::format
