// SPDX-License-Identifier: Apache-2.0
// The index in memory: lookups, growth and hidden chunks.
#include "index/neighbour_index.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "base/metrics.h"

namespace varve::index {
namespace {

constexpr VersionNumber kOld{3};
constexpr VersionNumber kNew{4};

Fingerprint fingerprint(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Fingerprint out;
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

// Returns fingerprints that all map to the table's last slot.
Fingerprint high(std::uint8_t last) {
  Fingerprint out;
  out.fill(std::byte{0xff});
  out[19] = static_cast<std::byte>(last);
  return out;
}

base::IdRuns old_chunks(std::uint32_t count) {
  // A gap, as after a version that used only some of the chunks.
  return base::IdRuns::from({{ChunkId::make(VersionNumber{1}, 7), count / 2},
                             {ChunkId::make(kOld, 0), count - count / 2}});
}

TEST(NeighbourIndexTest, CountsLookupsHitsAndEntriesUntilItStops) {
  base::Metrics registry;
  const IndexMetrics metrics(registry);
  NeighbourIndex index(old_chunks(10), kNew);
  index.insert(fingerprint(0), old_chunks(10).select(0));
  index.count_in(metrics);
  EXPECT_EQ(metrics.entries.value(), 1U);
  for (std::uint32_t i = 0; i < 2000; ++i) index.insert(fingerprint(i + 1), ChunkId::make(kNew, i));
  EXPECT_EQ(metrics.entries.value(), 2001U) << "the table has grown meanwhile";
  const std::vector<Fingerprint> asked{fingerprint(7), fingerprint(5000), fingerprint(8)};
  std::vector<std::optional<ChunkId>> ids(asked.size());
  index.find(asked, ids);
  EXPECT_EQ(metrics.lookups.value(), 3U);
  EXPECT_EQ(metrics.hits.value(), 2U);
  {
    NeighbourIndex other(old_chunks(10), kNew);
    other.insert(fingerprint(0), old_chunks(10).select(0));
    other.count_in(metrics);
    EXPECT_EQ(metrics.entries.value(), 2002U);
  }
  EXPECT_EQ(metrics.entries.value(), 2001U) << "a destroyed index still counts";
  index.stop_counting();
  EXPECT_EQ(metrics.entries.value(), 0U);
  index.insert(fingerprint(9000), ChunkId::make(kNew, 3000));
  EXPECT_TRUE(index.find_one(fingerprint(9000)));
  EXPECT_EQ(metrics.entries.value(), 0U);
  EXPECT_EQ(metrics.lookups.value(), 3U);
}

TEST(NeighbourIndexTest, GrowsAndFindsAllAndNothingElse) {
  NeighbourIndex index(old_chunks(100), kNew);
  for (std::uint32_t i = 0; i < 50000; ++i) {
    const auto id = i < 100 ? old_chunks(100).select(i) : ChunkId::make(kNew, i - 100);
    ASSERT_FALSE(index.find_one(fingerprint(i)));
    index.insert(fingerprint(i), id);
  }
  EXPECT_EQ(index.size(), 50000U);
  for (std::uint32_t i = 0; i < 50000; ++i) {
    const auto id = i < 100 ? old_chunks(100).select(i) : ChunkId::make(kNew, i - 100);
    ASSERT_EQ(index.find_one(fingerprint(i)), id) << i;
  }
  for (std::uint32_t i = 50000; i < 51000; ++i) ASSERT_FALSE(index.find_one(fingerprint(i)));
}

TEST(NeighbourIndexTest, RetiredChunksAreNotFoundUntilTheyAreStoredAgainOrRestored) {
  const auto old = old_chunks(100);
  NeighbourIndex index(old, kNew);
  for (std::uint32_t i = 0; i < 100; ++i) index.insert(fingerprint(i), old.select(i));
  const ChunkId first = old.runs().front().first;
  EXPECT_EQ(index.covers(first, 50), 50U);
  const auto gone = base::IdRuns::from({{first.plus(10), 5}, {first.plus(20), 1}});
  EXPECT_EQ(index.retire(gone), gone);
  EXPECT_EQ(index.retire(gone), base::IdRuns()) << "they were hidden before";
  EXPECT_EQ(index.covers(first, 50), 10U);
  EXPECT_EQ(index.covers(first.plus(12), 3), 0U);
  EXPECT_EQ(index.covers(first.plus(15), 35), 5U);
  EXPECT_EQ(index.find_one(fingerprint(9)), first.plus(9));
  EXPECT_FALSE(index.find_one(fingerprint(10)));
  EXPECT_FALSE(index.find_one(fingerprint(20)));
  index.insert(fingerprint(10), ChunkId::make(kNew, 0));
  EXPECT_EQ(index.find_one(fingerprint(10)), ChunkId::make(kNew, 0));
  index.restore(base::IdRuns::from({{first.plus(20), 1}}));
  EXPECT_EQ(index.find_one(fingerprint(20)), first.plus(20));
  EXPECT_FALSE(index.find_one(fingerprint(11)));
}

TEST(NeighbourIndexTest, EntriesPastTheEndGoOnAtTheStart) {
  NeighbourIndex index(base::IdRuns(), kNew);
  for (std::uint32_t i = 0; i < 200; ++i) {
    index.insert(high(static_cast<std::uint8_t>(i)), ChunkId::make(kNew, i));
  }
  Fingerprint low{};
  index.insert(low, ChunkId::make(kNew, 200));  // Its slot is already occupied.
  for (std::uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(index.find_one(high(static_cast<std::uint8_t>(i))), ChunkId::make(kNew, i));
  }
  EXPECT_EQ(index.find_one(low), ChunkId::make(kNew, 200));
  EXPECT_FALSE(index.find_one(high(201)));
}

}  // namespace
}  // namespace varve::index
