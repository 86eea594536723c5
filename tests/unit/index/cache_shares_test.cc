// SPDX-License-Identifier: Apache-2.0
// Stack distances against a list, and the shares of streams with known curves.
#include "index/cache_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>

#include "index/tle_cache.h"
#include "support/pool_containers.h"

namespace varve::index {
namespace {

Tag tag_of_value(std::uint64_t value) { return tag_of(random_fingerprint(value)); }

TEST(RecencyOrder, DistancesAreThoseOfAList) {
  RecencyOrder order;
  std::list<RecencyOrder::Item> list;  // The most recently used first.
  std::map<RecencyOrder::Item, RecencyOrder::Time> times;
  std::mt19937_64 random(3);
  for (int step = 0; step < 20000; ++step) {
    const auto item = static_cast<RecencyOrder::Item>(1 + random() % 150);
    if (const auto known = std::ranges::find(list, item); known != list.end()) {
      ASSERT_EQ(order.newer_than(times[item]), std::distance(list.begin(), known)) << step;
      order.remove(times[item]);
      list.erase(known);
    }
    if (random() % 4 != 0) {
      times[item] = order.push(item, [&](auto moved, auto time) { times[moved] = time; });
      list.push_front(item);
    }
    ASSERT_EQ(order.size(), list.size());
    if (!list.empty()) {
      ASSERT_EQ(order.oldest(), list.back());
    }
  }
}

TEST(CacheShares, StreamThatRepeatsGetsTheEntriesOfStreamsThatDoNot) {
  constexpr std::size_t kEntries = 4000;
  CacheShares shares(kEntries);
  std::uint64_t next = 1'000'000;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    shares.arrive(1, tag_of_value(i % 3000));  // One list of both streams has the last 2,000.
    shares.arrive(2, tag_of_value(next++));
  }
  EXPECT_TRUE(shares.in_use());
  EXPECT_NEAR(static_cast<double>(shares.share_of(1)), 3000, 250);
  EXPECT_LE(shares.share_of(1) + shares.share_of(2), kEntries);
  EXPECT_NEAR(shares.locality(1), 2000, 200);
  EXPECT_EQ(shares.locality(2), 0);
  EXPECT_EQ(shares.locality(7), 0);
}

TEST(CacheShares, EqualStreamsHaveNoShares) {
  constexpr std::size_t kEntries = 4000;
  CacheShares shares(kEntries);
  std::mt19937_64 random(8);
  int in_use = 0;
  for (int i = 0; i < 100'000; ++i) {
    const StreamSlot slot = 1 + random() % 4;
    shares.arrive(slot, tag_of_value(slot * 1'000'000 + random() % 3000));
    in_use += shares.in_use() ? 1 : 0;
  }
  EXPECT_EQ(in_use, 0);
  EXPECT_EQ(shares.share_of(1), 0U);
}

TEST(CacheShares, FollowsAStreamThatChanges) {
  constexpr std::size_t kEntries = 4000;
  CacheShares shares(kEntries);
  std::uint64_t next = 1'000'000;
  for (const StreamSlot repeats : {1U, 2U}) {
    for (std::uint64_t i = 0; i < 60'000; ++i) {
      shares.arrive(repeats, tag_of_value(i % 3000));
      shares.arrive(3 - repeats, tag_of_value(next++));
    }
    EXPECT_GT(shares.share_of(repeats), 2500U);
    EXPECT_LT(shares.share_of(3 - repeats), 1500U);
  }
}

TEST(CacheShares, SlotZeroTakesOverTheSampleOfARemovedStream) {
  CacheShares shares(4000);
  std::uint64_t next = 1'000'000;
  const auto send = [&](StreamSlot slot) {
    for (std::uint64_t i = 0; i < 60'000; ++i) {
      shares.arrive(slot, tag_of_value(i % 3000));
      shares.arrive(2, tag_of_value(next++));
    }
  };
  send(1);
  shares.remove_stream(1);
  EXPECT_EQ(shares.share_of(1), 0U);
  EXPECT_EQ(shares.locality(1), 0);
  send(1);
  EXPECT_GT(shares.share_of(1), 2500U);
}

TEST(CacheShares, SampleTakesAHundredthOfTheCachesMemory) {
  constexpr std::size_t kEntries = std::size_t{1} << 20;
  CacheShares shares(kEntries);
  std::mt19937_64 random(8);
  Tag tag{};
  for (std::size_t i = 0; i < 6 * kEntries; ++i) {
    base::store_le(tag.data() + 12, random());
    shares.arrive(random() % 32, tag);
  }
  EXPECT_LE(shares.memory_bytes(), kEntries * TleCache::kBytesPerEntry / 100);
}

}  // namespace
}  // namespace varve::index
