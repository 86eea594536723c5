// SPDX-License-Identifier: Apache-2.0
// The cache of the stream index finds as many duplicates as SLADE promises (Wu et al., TPDS'18), on
// streams with the published statistics, and on no streams much less than an LRU cache.
#include <gtest/gtest.h>

#include <cmath>

#include "slade/policies.h"
#include "slade/replay.h"
#include "slade/streams.h"

namespace varve::bench {
namespace {

constexpr std::uint64_t kSeed = 1;

double percent(std::uint64_t part, std::uint64_t all) {
  return 100 * static_cast<double>(part) / static_cast<double>(all);
}

// Table 1, and figure 5 according to the text of the paper.
TEST(SladeTraces, TwoHoursHaveThePublishedDuplicatesAndRuns) {
  const auto streams = two_hours(kSeed);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    SCOPED_TRACE(streams[i].name);
    const auto& kind = trace_kinds()[i];
    const auto its = statistics_of(streams[i].contents);
    EXPECT_EQ(streams[i].contents.size(), kind.written());
    EXPECT_NEAR(its.duplicates, kind.duplicates, 0.005);
    EXPECT_NEAR(its.in_runs_of_2, kind.in_runs_of_2, 0.05);
    EXPECT_NEAR(its.in_runs_of_16, kind.in_runs_of_16, 0.05);
  }
}

// Table 2. The bound: FIU-home has 32,607 duplicates, 4.58 % of the duplicates found by LRU.
TEST(SladeTraces, CachesOfTwoHoursFindThePublishedParts) {
  const auto streams = two_hours(kSeed);
  LruCache lru(kPublishedEntries);
  LfuCache lfu(kPublishedEntries);
  const auto by_lru = run(lru, streams, kSeed);
  const auto by_lfu = run(lfu, streams, kSeed);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    SCOPED_TRACE(streams[i].name);
    const auto& kind = trace_kinds()[i];
    EXPECT_NEAR(percent(by_lru.found_in[i], by_lru.found), 100 * kind.found_by_lru, 0.5);
    EXPECT_NEAR(percent(by_lfu.found_in[i], by_lfu.found), 100 * kind.found_by_lfu, 0.5);
  }
  EXPECT_LE(by_lru.ratio(), 36.2);
}

// Table 3.
TEST(SladeTraces, DaysHaveThePublishedDuplicates) {
  for (const auto& kind : trace_kinds()) {
    StreamGenerator generator(kind, kind.day_duplicates, 1, 0, kSeed);
    const auto day = generator.write(kind.written_in_a_day() / 10);
    EXPECT_NEAR(statistics_of(day).duplicates, kind.day_duplicates, 0.01) << kind.name;
  }
}

/// A workload of the paper, and the least gain over iDedup with LRU in the paper.
struct Mix {
  int good = 0;
  int weak = 0;
  double least = 0;
};

TEST(StreamCacheGate, SharesFindMoreThanLruByThePublishedGain) {
  constexpr std::size_t kArrivals = 1'000'000;
  for (const auto& [good, weak, least] : {Mix{3, 1, 8.04}, Mix{1, 1, 8.09}, Mix{1, 3, 13.86}}) {
    const auto streams = generated_streams(good, weak, kArrivals, kSeed);
    // As parts of all writes, the published caches of 80 and 160 MB.
    for (const std::size_t entries : {kArrivals * 45 / 10000, kArrivals * 9 / 1000}) {
      LruCache lru(entries);
      TlePolicy shares(entries);
      const double plain = run(lru, streams, kSeed).ratio();
      const double found = run(shares, streams, kSeed).ratio();
      EXPECT_GE(100 * (found / plain - 1), least) << good << ":" << weak << ", " << entries;
    }
  }
}

TEST(StreamCacheGate, DrawsByLocalityFindMoreThanLru) {
  constexpr std::size_t kArrivals = 1'000'000;
  const auto streams = generated_streams(1, 3, kArrivals, kSeed);
  constexpr std::size_t kEntries = kArrivals * 18 / 1000;
  LruCache lru(kEntries);
  const double plain = run(lru, streams, kSeed).ratio();
  for (const auto rule : {index::EvictionRule::kLocality, index::EvictionRule::kPublished}) {
    TlePolicy cache(kEntries, rule);
    EXPECT_GE(run(cache, streams, kSeed).ratio(), 1.08 * plain);
  }
}

// Each stream writes a set of contents again and again, with 2 % of changes. All duplicates are
// contents of the version before, so no estimate of an interval sees the duplicates.
Streams versions(const std::vector<std::size_t>& sizes, int count) {
  Streams streams;
  Random random(7);
  std::uint64_t next = 0;
  for (const auto size : sizes) {
    auto& contents = streams.emplace_back().contents;
    std::vector<std::uint64_t> set(size);
    for (auto& one : set) one = next++;
    for (int version = 0; version < count; ++version) {
      contents.insert(contents.end(), set.begin(), set.end());
      for (std::size_t i = 0; i < size / 50; ++i) set[random.below(size)] = next++;
    }
  }
  return streams;
}

TEST(StreamCacheGate, SharesNeverFindMuchLessThanLru) {
  struct Case {
    std::string name;
    Streams streams;
    std::size_t entries;
  };
  std::vector<Case> cases;
  cases.push_back({"versions that fit", versions({2000, 3000, 1000, 2500}, 8), 9000});
  cases.push_back({"half of the versions", versions({4000, 4000, 4000, 4000}, 8), 8000});
  cases.push_back({"different versions", versions({1000, 2000, 20'000, 9000}, 6), 4000});
  cases.push_back({"one stream", versions({6000}, 12), 7000});
  // Streams with changing sets: a partition with slow updates would lose.
  Streams changing;
  Random random(11);
  for (std::uint64_t stream = 0; stream < 4; ++stream) {
    auto& contents = changing.emplace_back().contents;
    for (std::uint64_t i = 0; i < 120'000; ++i) {
      const bool is_active = i / 5000 % 4 == stream;
      contents.push_back((stream << 40) + (is_active ? random.below(3000) : (1 << 20) + i));
    }
  }
  cases.push_back({"changing streams", std::move(changing), 4000});
  for (const auto& kind : trace_kinds()) {
    Streams same;
    for (std::uint64_t i = 1; i <= 4; ++i) {
      StreamGenerator generator(kind, kind.day_duplicates, i, 0.4, i);
      same.push_back({kind.name, generator.write(100'000)});
    }
    cases.push_back({"four of " + kind.name, std::move(same), 6000});
  }
  for (const auto& [name, streams, entries] : cases) {
    LruCache lru(entries);
    TlePolicy shares(entries);
    const double plain = run(lru, streams, kSeed).ratio();
    const double found = run(shares, streams, kSeed).ratio();
    // Streams that change their sets within two turnovers of the cache lose 3 %: the counts of hits
    // follow later (docs/decisions/173).
    EXPECT_GE(found, (name == "changing streams" ? 0.965 : 0.99) * plain) << name;
    RecordProperty(name, std::to_string(100 * (found / plain - 1)));
  }
}

}  // namespace
}  // namespace varve::bench
