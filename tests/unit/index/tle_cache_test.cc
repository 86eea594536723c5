// SPDX-License-Identifier: Apache-2.0
// The cache shared by streams, against lists; and the estimates behind the shares.
#include "index/tle_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "base/coding.h"
#include "support/pool_containers.h"

namespace varve::index {
namespace {

Tag tag_number(std::uint64_t number) { return tag_of(random_fingerprint(number)); }
Entry entry(std::uint64_t number) {
  return {tag_number(number), pool_id(1, static_cast<std::uint32_t>(number))};
}

TleOptions options(std::size_t entries, EvictionRule rule = EvictionRule::kShares) {
  TleOptions options;
  options.entries = entries;
  options.rule = rule;
  return options;
}

// Sends a value through the cache as the index does. Returns whether the cache had the value.
bool send(TleCache& cache, StreamSlot slot, std::uint64_t value) {
  const bool is_hit = cache.find(tag_number(value)).has_value();
  cache.arrive(slot, tag_number(value), is_hit);
  cache.use(slot, entry(value));
  if (cache.wants_estimates()) cache.update();
  return is_hit;
}

TEST(Reservoir, KeepsEachArrivalWithTheSameProbability) {
  SeededRandom random(5);
  constexpr std::size_t kCapacity = 20;
  constexpr std::uint64_t kArrivals = 100;
  constexpr int kRounds = 20000;
  std::array<int, kArrivals> kept{};
  for (int round = 0; round < kRounds; ++round) {
    Reservoir reservoir(kCapacity);
    for (std::uint64_t i = 0; i < kArrivals; ++i) reservoir.offer(i, random);
    ASSERT_EQ(reservoir.arrivals(), kArrivals);
    ASSERT_EQ(reservoir.sample().size(), kCapacity);
    for (const auto value : reservoir.sample()) ++kept[value];
  }
  for (const int times : kept) EXPECT_NEAR(times, 4000, 300);  // Five standard deviations.
}

TEST(HoltForecast, FollowsAConstantAndATrend) {
  HoltForecast constant;
  EXPECT_TRUE(constant.empty());
  EXPECT_EQ(constant.next(), 0);
  for (int i = 0; i < 12; ++i) constant.add(50);
  EXPECT_NEAR(constant.next(), 50, 1e-9);
  HoltForecast rising;
  for (int i = 0; i < 8; ++i) rising.add(100 * i);
  EXPECT_NEAR(rising.next(), 800, 80);
  HoltForecast falling;
  for (const double value : {900.0, 600.0, 300.0, 0.0, 0.0}) falling.add(value);
  EXPECT_GE(falling.next(), 0);
}

TEST(RunThreshold, BalancesTheRunsOfWritesAndReads) {
  RunThreshold threshold;
  EXPECT_EQ(threshold.value(), 16U);
  threshold.update(100, 0);
  EXPECT_EQ(threshold.value(), 16U) << "nothing was learnt";
  for (int i = 0; i < 10; ++i) threshold.note_duplicates(i % 2 == 0 ? 2 : 6);
  threshold.update(100, 40);
  EXPECT_EQ(threshold.value(), 4U);
  for (int i = 0; i < 100; ++i) threshold.note_read(20);
  threshold.update(100, 40);
  EXPECT_EQ(threshold.value(), 12U);  // Half of the requests are reads.
  threshold.note_duplicates(1'000'000);
  for (int i = 0; i < 1'000'000; ++i) threshold.note_read(500);
  threshold.update(100, 40);
  EXPECT_EQ(threshold.value(), 63U);
  // The share of duplicates falls by more than half: the earlier counts are void.
  threshold.update(100, 10);
  EXPECT_EQ(threshold.value(), 63U);
  threshold.note_duplicates(1);
  threshold.update(100, 10);
  EXPECT_EQ(threshold.value(), 1U);
}

void expect_lru(EvictionRule rule) {
  constexpr std::size_t kEntries = 64;
  TleCache cache(options(kEntries, rule));
  const StreamSlot slot = cache.join();
  std::list<std::uint64_t> lru;
  std::mt19937_64 random(9);
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t value = random() % 100;
    const auto known = std::ranges::find(lru, value);
    ASSERT_EQ(send(cache, slot, value), known != lru.end()) << step;
    if (known != lru.end()) lru.erase(known);
    lru.push_front(value);
    if (lru.size() > kEntries) lru.pop_back();
    if (step % 50 == 0) {
      const auto gone = lru.back();
      cache.erase(tag_number(gone));
      lru.pop_back();
    }
    ASSERT_EQ(cache.size(), lru.size());
  }
  for (const auto value : lru) EXPECT_EQ(cache.find(tag_number(value)), entry(value).id());
}

TEST(TleCache, OneStreamIsAnLruCache) {
  for (const auto rule :
       {EvictionRule::kShares, EvictionRule::kLocality, EvictionRule::kPublished}) {
    expect_lru(rule);
  }
}

// Streams with equal curves have no shares: the cache evicts the oldest entry of all streams, and
// knows the time of use to 1/256 of the cache.
TEST(TleCache, EqualStreamsWithoutSharesAreAnLruCache) {
  constexpr std::size_t kEntries = 512;
  TleCache cache(options(kEntries));
  const StreamSlot slots[] = {cache.join(), cache.join(), cache.join()};
  std::list<std::uint64_t> lru;
  std::mt19937_64 random(9);
  int different = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t value = random() % 1000;
    const auto known = std::ranges::find(lru, value);
    if (send(cache, slots[value % 3], value) != (known != lru.end())) ++different;
    if (known != lru.end()) lru.erase(known);
    lru.push_front(value);
    if (lru.size() > kEntries) lru.pop_back();
  }
  EXPECT_LE(different, 100);
}

// An oracle repeats the decisions of the cache with plain lists, for many streams and all changes.
void expect_agreement(EvictionRule rule) {
  constexpr std::size_t kEntries = 200;
  TleOptions small = options(kEntries, rule);
  small.streams_max = 6;
  TleCache cache(small);
  std::map<std::uint64_t, ChunkId> known;  // May have been evicted.
  std::vector<StreamSlot> open;
  std::vector<StreamSlot> closed;
  std::mt19937_64 random(21);
  for (int step = 0; step < 60000; ++step) {
    const auto action = random() % 1000;
    if (action < 4 || open.empty()) {
      if (!closed.empty() && random() % 2 == 0 && cache.is_waiting(closed.back())) {
        cache.resume(closed.back());
        open.push_back(closed.back());
        closed.pop_back();
      } else {
        const auto slot = cache.join();
        ASSERT_LT(slot, 6U);
        std::erase(closed, slot);
        open.push_back(slot);
      }
    } else if (action < 8) {
      const auto place = random() % open.size();
      cache.quit(open[place]);
      if (open[place] != 0 && cache.is_waiting(open[place])) closed.push_back(open[place]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(place));
    } else if (action < 10) {
      const auto birth = random() % 3;
      cache.erase_if([&](ChunkId id) { return id.ordinal() % 3 == birth; });
      std::erase_if(known, [&](const auto& one) { return one.second.ordinal() % 3 == birth; });
    } else {
      const auto slot = open[random() % open.size()];
      const auto value = random() % 1000;
      const auto id = pool_id(1, static_cast<std::uint32_t>(step));
      const auto found = cache.find(tag_number(value));
      if (found) {
        ASSERT_EQ(*found, known.at(value)) << step;
      }
      cache.arrive(slot, tag_number(value), found.has_value());
      cache.use(slot, Entry(tag_number(value), id));
      if (cache.find(tag_number(value))) {
        ASSERT_EQ(cache.find(tag_number(value)), id);
        known[value] = id;
      } else {
        known.erase(value);
      }
      if (cache.wants_estimates()) cache.update();
    }
    ASSERT_LE(cache.size(), kEntries);
    if (step % 500 == 0) {
      std::size_t sum = 0;
      for (StreamSlot slot = 0; slot < 6; ++slot) {
        if (slot == 0 || cache.is_waiting(slot) || std::ranges::count(open, slot) != 0) {
          sum += cache.state(slot).entries;
        }
      }
      ASSERT_EQ(sum, cache.size()) << step;
    }
  }
}

TEST(TleCache, EntriesAgreeWithListsUnderAllChanges) {
  expect_agreement(EvictionRule::kShares);
  expect_agreement(EvictionRule::kLocality);
}

// The first stream repeats 3,000 values; one list of both streams would keep 2,000 of the values.
TEST(TleCache, SharesKeepAStreamThatRepeatsWithinTheWholeCache) {
  TleCache cache(options(4000));
  const StreamSlot good = cache.join();
  const StreamSlot poor = cache.join();
  std::uint64_t next = 1'000'000;
  int hits = 0;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    const bool is_hit = send(cache, good, i % 3000);
    hits += is_hit && i >= 30'000 ? 1 : 0;
    send(cache, poor, next++);
  }
  EXPECT_GT(hits, 29'000);
  EXPECT_NEAR(static_cast<double>(cache.state(good).entries), 3000, 250);
  EXPECT_GT(cache.state(good).locality, 1700);
  EXPECT_TRUE(cache.state(poor).is_known);
  EXPECT_EQ(cache.state(poor).locality, 0);
}

TEST(TleCache, EvictionFollowsTheLocalityOfTheStreams) {
  TleOptions all = options(4000, EvictionRule::kLocality);
  all.admits_all = true;
  TleCache cache(all);
  const StreamSlot good = cache.join();
  const StreamSlot poor = cache.join();
  std::uint64_t next = 1'000'000;
  std::mt19937_64 random(4);
  for (int i = 0; i < 40000; ++i) {
    send(cache, good, random() % 3600);
    send(cache, poor, next++);
  }
  EXPECT_TRUE(cache.state(good).is_known);
  EXPECT_GT(cache.state(good).locality, 5 * cache.state(poor).locality);
  EXPECT_GT(cache.state(good).entries, 2400U) << "an LRU cache would have halves";
  EXPECT_GT(cache.evictions(), 30000U);
}

TEST(TleCache, StreamWithoutLocalityIsNotAdmittedUntilItRepeats) {
  TleCache cache(options(10000, EvictionRule::kLocality));
  const StreamSlot good = cache.join();
  const StreamSlot other = cache.join();
  std::uint64_t next = 1'000'000;
  std::mt19937_64 random(4);
  EXPECT_TRUE(cache.state(other).is_admitted) << "nothing is known yet";
  for (int i = 0; i < 30000; ++i) {
    send(cache, good, random() % 300);
    send(cache, other, next++);
  }
  EXPECT_TRUE(cache.state(good).is_admitted);
  EXPECT_FALSE(cache.state(other).is_admitted);
  EXPECT_FALSE(cache.find(tag_number(next - 1)));
  for (int i = 0; i < 30000; ++i) {
    send(cache, good, random() % 300);
    send(cache, other, 2'000'000 + random() % 300);
  }
  EXPECT_TRUE(cache.state(other).is_admitted);
}

// The published estimate gives streams of different values up to 3 % of duplicates.
TEST(TleCache, EstimateOfDifferentValuesIsZero) {
  for (const std::uint64_t arrivals : {500U, 1800U, 50'000U}) {
    StreamSample sample;
    sample.arrivals = sample.all_arrivals = arrivals;
    for (std::uint64_t i = 0; i < arrivals * 15 / 100; ++i) sample.values.push_back(i);
    EXPECT_GT(invented_duplicates(sample.values.size(), arrivals),
              0.002 * static_cast<double>(arrivals));
    EXPECT_NEAR(TleCache::estimate(sample).locality, 0, 1e-6) << arrivals;
  }
}

// Found chunks of another stream, or of an earlier interval, do not admit a stream.
TEST(TleCache, AdmissionFollowsTheEstimateAlone) {
  TleCache cache(options(10000, EvictionRule::kLocality));
  const StreamSlot good = cache.join();
  const StreamSlot other = cache.join();
  std::uint64_t next = 1'000'000;
  for (int i = 0; i < 30000; ++i) {
    send(cache, good, static_cast<std::uint64_t>(i) % 300);
    cache.arrive(other, tag_number(next++), i % 10 == 0);
    if (cache.wants_estimates()) cache.update();
  }
  EXPECT_FALSE(cache.state(other).is_admitted);
}

TEST(TleCache, StreamThatReturnsHasItsEntriesAndEstimate) {
  TleCache cache(options(1000, EvictionRule::kLocality));
  const StreamSlot slot = cache.join();
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t value = 0; value < 400; ++value) send(cache, slot, value);
  }
  const auto before = cache.state(slot);
  cache.quit(slot);
  EXPECT_TRUE(cache.is_waiting(slot));
  cache.resume(slot);
  EXPECT_FALSE(cache.is_waiting(slot));
  EXPECT_TRUE(cache.state(slot).is_known);
  EXPECT_EQ(cache.state(slot).locality, before.locality);
  EXPECT_EQ(cache.state(slot).entries, 400U);
  EXPECT_TRUE(cache.find(tag_number(3)));
}

TEST(TleCache, SameSeedGivesTheSameCache) {
  const auto run = [](std::uint64_t seed) {
    TleOptions seeded = options(300, EvictionRule::kLocality);
    seeded.seed = seed;
    TleCache cache(seeded);
    std::vector<StreamSlot> slots{cache.join(), cache.join(), cache.join()};
    std::mt19937_64 random(2);
    std::vector<bool> hits;
    for (int i = 0; i < 20000; ++i) {
      hits.push_back(send(cache, slots[random() % 3], random() % (random() % 2 == 0 ? 200 : 5000)));
    }
    return hits;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(TleCache, EstimateIsCloseToTheCountedLocality) {
  TleCache cache(options(20000, EvictionRule::kLocality));
  const StreamSlot slots[] = {cache.join(), cache.join()};
  std::mt19937_64 random(6);
  std::set<std::uint64_t> seen[2];
  std::uint64_t arrivals[2] = {};
  std::vector<double> errors;
  int intervals = 0;
  while (intervals < 6) {
    for (const int which : {0, 1}) {
      const auto value = which == 0 ? random() % 3000 : 1'000'000 + random() % 60000;
      seen[which].insert(value);
      ++arrivals[which];
      const bool is_hit = cache.find(tag_number(value)).has_value();
      cache.arrive(slots[which], tag_number(value), is_hit);
      cache.use(slots[which], entry(value));
      if (!cache.wants_estimates()) continue;
      std::vector<StreamEstimate> estimates;
      for (auto& sample : cache.take_samples()) {
        estimates.push_back(TleCache::estimate(std::move(sample)));
      }
      for (const auto& one : estimates) {
        const int its = one.of.slot == slots[0] ? 0 : 1;
        ASSERT_EQ(one.of.arrivals, arrivals[its]);
        const double counted = static_cast<double>(arrivals[its] - seen[its].size());
        const double error = std::abs(one.locality - counted) / static_cast<double>(arrivals[its]);
        EXPECT_LE(error, 0.25);
        errors.push_back(error);
        seen[its].clear();
        arrivals[its] = 0;
      }
      cache.apply(estimates);
      ++intervals;
    }
  }
  double sum = 0;
  for (const double error : errors) sum += error;
  EXPECT_LE(sum / static_cast<double>(errors.size()), 0.08);
}

}  // namespace
}  // namespace varve::index
