// SPDX-License-Identifier: Apache-2.0
// The tables of keyed chunkers: what they are for known keys, and how good they are for many.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ingest/keyed_tables.h"
#include "support/chunker_test_data.h"
#include "support/slow_chunkers.h"
#include "support/test_keys.h"

namespace varve::ingest {
namespace {

using test::Bytes;
using varve::test::must;

constexpr std::uint8_t kKeys = 100;
constexpr ChunkSizes kSizes{2048, 8192, 65536};

TEST(KeyedTables, AreThoseOfTheFormatForAKnownKey) {
  // Computed from FORMAT.md §14.5 by a program in another language, from a master key of bytes 7.
  const auto keys = varve::test::test_keys(7);
  const auto gear = must(derive_gear16_table(*keys));
  EXPECT_EQ(gear.matrix_low, 0xc227daaae15233e7U);
  EXPECT_EQ(gear.matrix_high, 0x70e6b89749635825U);
  EXPECT_EQ(gear.entries[0x00], 0xb27a);
  EXPECT_EQ(gear.entries[0x20], 0x2627);
  EXPECT_EQ(gear.entries[0xff], 0x2190);
  const auto fastcdc = must(derive_fastcdc_table(*keys));
  EXPECT_EQ(fastcdc[0], 0x9a6d2ff81fa88a45U);
  EXPECT_EQ(fastcdc[255], 0xf146f25e1d3aad73U);
}

TEST(KeyedTables, EqualTheSlowOnesForManyKeys) {
  for (std::uint8_t key = 0; key < kKeys; ++key) {
    const auto keys = varve::test::test_keys(key);
    const auto gear = must(derive_gear16_table(*keys));
    ASSERT_TRUE(std::ranges::equal(gear.entries, test::slow_gear16_table(*keys))) << int{key};
    ASSERT_EQ(must(derive_fastcdc_table(*keys)), test::slow_fastcdc_table(*keys)) << int{key};
  }
}

TEST(KeyedTables, DifferBetweenKeysAndBetweenRepositories) {
  std::set<std::array<std::uint16_t, 256>> gear;
  std::set<FastCdcTable> fastcdc;
  for (std::uint8_t key = 0; key < kKeys; ++key) {
    for (const std::string& id : {varve::test::kTestRepositoryId, std::string(32, 'f')}) {
      const auto keys = varve::test::test_keys(key, id);
      gear.insert(must(derive_gear16_table(*keys)).entries);
      fastcdc.insert(must(derive_fastcdc_table(*keys)));
    }
  }
  EXPECT_EQ(gear.size(), 2U * kKeys);
  EXPECT_EQ(fastcdc.size(), 2U * kKeys);
}

TEST(KeyedTables, ThePlainTableIsGoodAndASingularOneIsNot) {
  EXPECT_TRUE(is_good_gear16_table(kGear16Table));
  EXPECT_FALSE(is_good_gear16_table(make_gear16_table(0, kGear16MatrixHigh)));
  EXPECT_FALSE(is_good_gear16_table(make_gear16_table(kGear16MatrixLow, kGear16MatrixLow)));
}

struct Distribution {
  double mean = 0;
  double share_below_average = 0;
  double share_longest = 0;
};

Distribution distribution_of(const Chunker& chunker, const Bytes& data) {
  const auto lengths = test::cut(chunker, data);
  const auto count = static_cast<double>(lengths.size());
  const auto share = [&](auto predicate) {
    return static_cast<double>(std::ranges::count_if(lengths, predicate)) / count;
  };
  return {.mean = static_cast<double>(data.size()) / count,
          .share_below_average = share([](std::size_t n) { return n <= kSizes.avg; }),
          .share_longest = share([](std::size_t n) { return n == kSizes.max; })};
}

// Of 1000 chunks of random bytes, the mean length has a standard deviation of 2 %: that of one is
// half of the average.
TEST(KeyedChunkers, ChunksOfRandomBytesAreAsLongForEachKey) {
  const Bytes data = test::random_bytes(10U << 20, 41);
  for (const auto& kind : chunker_kinds()) {
    if (!kind.is_keyed()) continue;
    double sum = 0;
    for (std::uint8_t key = 0; key < kKeys; ++key) {
      const auto keys = varve::test::test_keys(key);
      const auto seen = distribution_of(*must(make_chunker(kind.id, kSizes, keys.get())), data);
      EXPECT_NEAR(seen.mean, 9400, 900) << kind.id << ", key " << int{key};
      EXPECT_NEAR(seen.share_below_average, 0.175, 0.06) << kind.id << ", key " << int{key};
      EXPECT_LT(seen.share_longest, 0.01) << kind.id << ", key " << int{key};
      sum += seen.mean;
    }
    EXPECT_NEAR(sum / kKeys, 9400, 250) << kind.id;
  }
}

TEST(KeyedChunkers, ZerosMakeTheLongestChunks) {
  const Bytes zeros(kSizes.max + 1);
  for (const auto& kind : chunker_kinds()) {
    for (std::uint8_t key = 0; key < kKeys; ++key) {
      const auto keys = varve::test::test_keys(key);
      const auto chunker = must(make_chunker(kind.id, kSizes, keys.get()));
      ASSERT_EQ(chunker->next(zeros), kSizes.max) << kind.id << ", key " << int{key};
    }
  }
}

TEST(KeyedChunkers, BoundariesOfTwoKeysHaveNothingInCommon) {
  const Bytes data = test::random_bytes(8U << 20, 42);
  for (const auto& kind : chunker_kinds()) {
    if (!kind.is_keyed()) continue;
    std::vector<std::size_t> ends[2];
    for (std::uint8_t key = 0; key < 2; ++key) {
      const auto keys = varve::test::test_keys(key);
      std::size_t at = 0;
      for (const auto length : test::cut(*must(make_chunker(kind.id, kSizes, keys.get())), data)) {
        ends[key].push_back(at += length);
      }
    }
    std::vector<std::size_t> common;
    std::ranges::set_intersection(ends[0], ends[1], std::back_inserter(common));
    EXPECT_LT(common.size(), 6U) << kind.id;  // The end of the data, and chance.
  }
}

TEST(KeyedChunkers, NeedKeys) {
  for (const auto& kind : chunker_kinds()) {
    const auto made = make_chunker(kind.id, kSizes);
    EXPECT_EQ(made.has_value(), !kind.is_keyed()) << kind.id;
    if (!made) {
      EXPECT_EQ(made.error().code(), ErrorCode::kInvalid);
    }
    EXPECT_TRUE(must(find_chunker(kind.keyed_id))->is_keyed()) << kind.id;
  }
}

}  // namespace
}  // namespace varve::ingest
