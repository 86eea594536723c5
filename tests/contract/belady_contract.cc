// SPDX-License-Identifier: Apache-2.0
// Checks that the engine `opt` reads as few containers as Belady's rule allows.
//
// An area takes what the cache has, then reads every other container that it needs once. A
// container that was read stays in the cache unless all others there are needed sooner. This is the
// cache of Fu et al., ATC'14 §5.3, except that theirs keeps every container that was just read.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/id_runs.h"
#include "format/fingerprinter.h"
#include "layout_benches.h"
#include "support/container_traces.h"
#include "support/sanitized.h"

namespace varve::restore {
namespace {

constexpr std::size_t kAreaChunks = ContainerTrace::kContainerChunks;

// Belady's rule on the containers of a trace, beside the engine's code. `window` is the number of
// chunks from the start of an area whose order is known. Containers that are not needed there
// leave by last use. Without a window, this is the rule of `lru`.
std::size_t belady_reads(const ContainerTrace& trace, std::size_t capacity, std::size_t window) {
  constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> kept;  // Most recently used last.
  std::size_t reads = 0;
  const std::size_t chunks = trace.chunks.size();
  for (std::size_t begin = 0; begin < chunks; begin += kAreaChunks) {
    const std::size_t end = std::min(begin + kAreaChunks, chunks);
    const auto next_use = [&](std::size_t container) {
      for (std::size_t at = end; at < std::min(begin + window, chunks); ++at) {
        if (trace.container(at) == container) return at;
      }
      return kUnknown;
    };
    std::set<std::size_t> missing;
    std::set<std::size_t> seen;
    for (std::size_t at = begin; at < end; ++at) {
      // A chunk is looked up once for all its places in the area.
      if (!seen.insert(trace.chunks[at]).second) continue;
      const auto found = std::find(kept.begin(), kept.end(), trace.container(at));
      if (found == kept.end()) {
        missing.insert(trace.container(at));
      } else {
        std::rotate(found, found + 1, kept.end());
      }
    }
    reads += missing.size();
    for (const std::size_t container : missing) {
      if (kept.size() == capacity) {
        // The first of several is the least recently used one.
        const auto farthest = std::max_element(
            kept.begin(), kept.end(),
            [&](std::size_t a, std::size_t b) { return next_use(a) < next_use(b); });
        if (next_use(*farthest) < next_use(container)) continue;
        kept.erase(farthest);
      }
      kept.push_back(container);
    }
  }
  return reads;
}

// The fewest reads of any choice of kept containers. Tries all of them.
std::size_t fewest_reads(const ContainerTrace& trace, std::size_t capacity) {
  std::map<std::uint32_t, std::size_t> reads = {{0, 0}};  // By the set of kept containers.
  for (std::size_t begin = 0; begin < trace.chunks.size(); begin += kAreaChunks) {
    std::uint32_t needed = 0;
    const std::size_t end = std::min(begin + kAreaChunks, trace.chunks.size());
    for (std::size_t at = begin; at < end; ++at) needed |= 1U << trace.container(at);
    std::map<std::uint32_t, std::size_t> after;
    for (const auto& [kept, so_far] : reads) {
      const std::size_t now = so_far + static_cast<std::size_t>(std::popcount(needed & ~kept));
      const std::uint32_t all = needed | kept;
      const auto size = std::min<std::size_t>(capacity, static_cast<unsigned>(std::popcount(all)));
      for (std::uint32_t part = all;; part = (part - 1) & all) {
        if (static_cast<std::size_t>(std::popcount(part)) == size) {
          const auto [known, is_new] = after.try_emplace(part, now);
          if (!is_new) known->second = std::min(known->second, now);
        }
        if (part == 0) break;
      }
    }
    reads = std::move(after);
  }
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const auto& [kept, all] : reads) fewest = std::min(fewest, all);
  return fewest;
}

std::vector<TracePointer> traces(std::size_t areas) {
  std::vector<TracePointer> all;
  all.push_back(sequential_with_drift(areas));
  all.push_back(scattered(areas, 12));
  all.push_back(cyclic(20, areas / 20));
  all.push_back(random_chunks(24, areas, 5));
  all.push_back(skewed(32, areas));
  return all;
}

void expect_belady(ContainerTrace& trace, std::size_t capacity) {
  SCOPED_TRACE(trace.name() + ", " + std::to_string(capacity) + " containers");
  const TraceReplay opt = replay(trace, "opt", capacity);
  const TraceReplay lru = replay(trace, "lru", capacity);
  EXPECT_EQ(opt.requests, opt.containers_read);
  EXPECT_EQ(lru.requests, lru.containers_read);
  EXPECT_EQ(opt.containers_read, belady_reads(trace, capacity, opt.window_chunks));
  EXPECT_EQ(lru.containers_read, belady_reads(trace, capacity, 0));
  EXPECT_LE(opt.containers_read, lru.containers_read);
  EXPECT_LT(opt.containers_read, lru.containers_read) << "the trace does not tell them apart";
}

class BeladyContract : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kThreadsWatched) GTEST_SKIP() << "the choice of containers has one thread";
  }
};

TEST_F(BeladyContract, ReadsAsFewContainersAsBeladyOnEveryTrace) {
  for (const auto& trace : traces(80)) {
    for (const std::size_t capacity : {4U, 9U}) expect_belady(*trace, capacity);
  }
}

TEST_F(BeladyContract, StreamsLongerThanTheWindowFollowTheKnownPartOfTheOrder) {
  for (const auto& trace : traces(200)) {
    const std::size_t capacity = 6;
    expect_belady(*trace, capacity);
    EXPECT_GT(trace->chunks.size(), 2 * replay(*trace, "opt", capacity).window_chunks);
  }
}

TEST_F(BeladyContract, NoOtherChoiceOfContainersNeedsFewerReads) {
  for (std::size_t capacity = 1; capacity <= 4; ++capacity) {
    for (const auto& trace : {cyclic(9, 4), random_chunks(12, 40, 9), scattered(14, 6)}) {
      SCOPED_TRACE(trace->name() + ", " + std::to_string(capacity) + " containers");
      const std::size_t fewest = fewest_reads(*trace, capacity);
      EXPECT_EQ(replay(*trace, "opt", capacity).containers_read, fewest);
      EXPECT_LE(fewest, replay(*trace, "lru", capacity).containers_read);
    }
  }
}

// Stores the chunks of a trace in the layout of a series, where every other container is in the
// pool.
void store_in(layout::SeriesBench& bench, ContainerTrace& trace, std::size_t containers) {
  const auto fingerprinter = format::make_sha256_fingerprinter();
  std::vector<base::IdRun> live;
  bench.open(VersionNumber{1});
  for (std::size_t container = 0; container < containers; ++container) {
    for (std::size_t i = 0; i < ContainerTrace::kContainerChunks; ++i) {
      const Bytes raw = ContainerTrace::bytes_of(container * ContainerTrace::kContainerChunks + i);
      const auto fingerprint = fingerprinter->fingerprint(raw);
      const auto id = container % 2 == 0 ? bench.layout().place(fingerprint, raw)
                                         : bench.layout().place_shared(fingerprint, raw);
      trace.ids_elsewhere.push_back(test::must(id));
      live.push_back({*id, 1});
    }
    test::must(bench.layout().flush());
  }
  bench.seal(VersionNumber{1}, base::IdRuns::from(std::move(live)));
  trace.elsewhere = &bench.layout();
}

TEST_F(BeladyContract, ContainersOfThePoolAreKeptByTheSameRule) {
  for (const auto& [make, containers] : {std::pair(
                                             +[] { return cyclic(9, 4); }, 9U),
                                         std::pair(
                                             +[] { return random_chunks(12, 40, 9); }, 12U),
                                         std::pair(
                                             +[] { return scattered(14, 6); }, 14U)}) {
    const auto trace = make();
    layout::SeriesBench bench(layout::Kind::kSeriesMixed);
    store_in(bench, *trace, containers);
    std::set<ContainerNumber> in_pool;
    for (const auto id : trace->ids_elsewhere) {
      const auto container = test::must(bench.layout().locate(id)).container;
      if (is_pool(container)) in_pool.insert(container);
    }
    ASSERT_EQ(in_pool.size(), containers / 2);
    for (const std::size_t capacity : {2U, 4U}) {
      SCOPED_TRACE(trace->name() + ", " + std::to_string(capacity) + " containers");
      const std::size_t fewest = fewest_reads(*trace, capacity);
      EXPECT_EQ(replay(*trace, "opt", capacity).containers_read, fewest);
      EXPECT_LT(fewest, replay(*trace, "lru", capacity).containers_read);
    }
  }
}

}  // namespace
}  // namespace varve::restore
