// SPDX-License-Identifier: Apache-2.0
// Checks each cycle of `alacc-paper` and `alacc-f80` against the published algorithm (ALACC,
// FAST'18), which is written here a second time, on lists of numbers instead of bytes.
//
// Words of the paper: an area under assembly is an FAB, all of them are the FAA, the near part of
// the window is the LAW. F-chunks are needed again in the LAW, P-chunks were used and are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/container_traces.h"

namespace varve::restore {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kFab = ContainerTrace::kContainerChunks;  // In chunks.
constexpr std::size_t kChunk = ContainerTrace::kChunkBytes;
// Memory of a cached chunk.
constexpr std::size_t kCachedChunk = kChunk + ChunkCache::kChunkOverheadBytes;

struct Variant {
  double fill = 0.2;              // The LAW grows while F-chunks fill less of the cache.
  bool keeps_law_with_p = false;  // The LAW does not shrink while there are P-chunks.
};

// One line of the log, with the values that the engine reports.
struct Line {
  std::size_t faa = 0;
  std::size_t law = 0;
  std::size_t reads = 0;
  std::size_t f_chunks = 0;
  std::size_t p_chunks = 0;
  AlaccRule rule = AlaccRule::kNone;
  bool operator==(const Line&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Line& line) {
  return out << "FAA " << line.faa << ", LAW " << line.law << ", reads " << line.reads << ", F "
             << line.f_chunks << ", P " << line.p_chunks << ", rule "
             << static_cast<int>(line.rule);
}

class PublishedAlacc {
 public:
  PublishedAlacc(const ContainerTrace& trace, const TraceReplay& engine, const Variant& variant)
      : chunks_(trace.chunks),
        variant_(variant),
        memory_(engine.memory),
        known_chunks_(engine.window_chunks),
        total_(1 + engine.memory / ContainerTrace::kAreaBytes),
        faa_(std::max<std::size_t>(total_ / 2, 1)),
        law_(2 * total_),
        filled_(chunks_.size(), Filled::kNot) {}

  std::vector<Line> run() {
    std::vector<Line> log;
    for (begin_ = 0; begin_ < chunks_.size(); begin_ = first_end()) {
      known_end_ = std::min(begin_ + known_chunks_, chunks_.size());
      added_ = 0;
      shrink_faa();
      extend_law();
      while (entered_ < begin_ + faa_ * kFab && entered_ < chunks_.size()) enter_fab();
      Line line{faa_, law_, read_missing(), f_.size(), p_.size(), AlaccRule::kNone};
      line.rule = adjust(line);
      log.push_back(line);
    }
    return log;
  }

 private:
  enum class Filled { kNot, kFromDisk, kFromCache };
  struct Future {
    std::size_t chunk;
    std::size_t next;
  };

  [[nodiscard]] std::size_t first_end() const { return std::min(begin_ + kFab, chunks_.size()); }

  // Returns the first use of a chunk in [from, to).
  [[nodiscard]] std::size_t use_in(std::size_t chunk, std::size_t from, std::size_t to) const {
    for (std::size_t at = from; at < to; ++at) {
      if (chunks_[at] == chunk) return at;
    }
    return kNever;
  }
  [[nodiscard]] std::size_t next_behind_faa(std::size_t chunk) const {
    return use_in(chunk, entered_, law_end_);
  }

  // Returns whether the cache had the chunk, and removes it.
  bool take(std::size_t chunk) {
    return std::erase_if(f_, [&](const Future& f) { return f.chunk == chunk; }) +
               std::erase(p_, chunk) >
           0;
  }
  void put(std::size_t chunk, std::size_t next) {
    if (next == kNever) {
      p_.push_back(chunk);
    } else {
      f_.push_back({chunk, next});
    }
  }
  [[nodiscard]] std::size_t cached() const { return (f_.size() + p_.size()) * kCachedChunk; }
  // Evicts the least recently used P-chunk, or without any the F-chunk that is needed last.
  // Returns false if that one is needed before `next`.
  bool evict_one(std::size_t next) {
    if (!p_.empty()) {
      p_.erase(p_.begin());
      return true;
    }
    const auto last = std::ranges::max_element(f_, {}, &Future::next);
    if (last == f_.end() || last->next < next) return false;
    f_.erase(last);
    return true;
  }
  // Caches a chunk that was read, or one of an FAB that was given up.
  void cache(std::size_t chunk, std::size_t next) {
    const bool was_f = std::ranges::count(f_, chunk, &Future::chunk) > 0;
    if (next != kNever && !was_f) ++added_;
    if (!take(chunk)) {
      while (cached() + kCachedChunk > cache_max_) {
        if (!evict_one(next)) return;
      }
    }
    put(chunk, next);
  }

  // Gives up the last FABs if the FAA became shorter. Their chunks are F-chunks then.
  void shrink_faa() {
    while (entered_ > begin_ + faa_ * kFab) {
      const std::size_t from = (entered_ - 1) / kFab * kFab;
      while (entered_ > from) {
        Filled& last = filled_[--entered_];
        if (last != Filled::kNot) cache(chunks_[entered_], entered_);
        last = Filled::kNot;
      }
    }
    cache_max_ = memory_ - (faa_ - 1) * ContainerTrace::kAreaBytes;
    while (cached() > cache_max_) static_cast<void>(evict_one(0));
  }

  // The LAW never gives up what it has seen.
  void extend_law() {
    const std::size_t end = std::min(begin_ + law_ * kFab, known_end_);
    for (; law_end_ < end; ++law_end_) {
      const std::size_t chunk = chunks_[law_end_];
      if (std::erase(p_, chunk) == 0) continue;
      put(chunk, law_end_);
      ++added_;
    }
  }

  // Appends an FAB, and copies what the cache has.
  void enter_fab() {
    const std::size_t from = entered_;
    entered_ = std::min(entered_ + kFab, chunks_.size());
    for (std::size_t at = from; at < entered_; ++at) {
      if (filled_[at] != Filled::kNot || !take(chunks_[at])) continue;
      fill(chunks_[at], Filled::kFromCache);
      put(chunks_[at], next_behind_faa(chunks_[at]));
    }
  }

  void fill(std::size_t chunk, Filled how) {
    for (std::size_t at = begin_; at < entered_; ++at) {
      if (chunks_[at] == chunk && filled_[at] == Filled::kNot) filled_[at] = how;
    }
  }

  // Reads the containers that the first FAB needs. Returns their number.
  std::size_t read_missing() {
    std::set<std::size_t> containers;
    for (std::size_t at = begin_; at < first_end(); ++at) {
      if (filled_[at] == Filled::kNot) containers.insert(chunks_[at] / kFab);
    }
    for (const std::size_t container : containers) {
      for (std::size_t chunk = container * kFab; chunk < (container + 1) * kFab; ++chunk) {
        const bool is_used = use_in(chunk, begin_, entered_) != kNever;
        const std::size_t next = next_behind_faa(chunk);
        if (is_used) fill(chunk, Filled::kFromDisk);
        if (is_used || next != kNever) cache(chunk, next);
      }
    }
    return containers.size();
  }

  // Changes the sizes at the end of a cycle (§5.2 of the paper).
  AlaccRule adjust(const Line& line) {
    const std::size_t chunks = first_end() - begin_;
    std::size_t duplicates = 0;
    std::size_t near = 0;
    std::size_t in_law = 0;
    bool used_cache = false;
    for (std::size_t at = begin_; at < first_end(); ++at) {
      if (filled_[at] == Filled::kFromCache) used_cache = true;
      const std::size_t next = use_in(chunks_[at], at + 1, known_end_);
      if (next == kNever) continue;
      ++duplicates;
      if (next - at < (faa_ + 1) * kFab) ++near;
      if (next < law_end_) ++in_law;
    }
    effective_ = line.reads <= 2 && !used_cache ? effective_ + 1 : 0;
    const std::size_t law_max = 6 * total_;
    const std::size_t cache_chunks = (total_ - faa_) * kFab;
    const std::size_t held = line.f_chunks + line.p_chunks;
    const bool is_full_of_p = held > 0 && 100 * line.p_chunks > 97 * held &&
                              10 * held > 9 * cache_chunks && cache_chunks > 0;
    AlaccRule rule = AlaccRule::kNone;
    int law_change = -1;
    if (faa_ < total_ && (effective_ > faa_ || (duplicates >= 16 && 10 * near > 8 * duplicates))) {
      rule = AlaccRule::kForwardGrows;
      effective_ = 0;
      ++faa_;
    } else if (faa_ > 1 && ((line.p_chunks == 0 && line.f_chunks > 0) || added_ > kFab)) {
      rule = AlaccRule::kCacheGrows;
      --faa_;
    } else if (faa_ < total_ && is_full_of_p) {
      rule = AlaccRule::kCacheShrinks;
      const bool few_reused = 20 * in_law < chunks && law_ > law_max / 2;
      if (!few_reused) law_change = static_cast<int>(std::max((law_max - law_) / total_, 1UL));
      ++faa_;
    } else if (cache_chunks == 0 || static_cast<double>(line.f_chunks) <
                                        variant_.fill * static_cast<double>(cache_chunks)) {
      rule = AlaccRule::kWindowGrows;
      law_change = 1;
    } else {
      rule = AlaccRule::kWindowShrinks;
    }
    if (law_change < 0 && variant_.keeps_law_with_p && line.p_chunks > 0) law_change = 0;
    const auto law = static_cast<std::ptrdiff_t>(law_) + law_change;
    law_ = std::clamp(static_cast<std::size_t>(law), total_, law_max);
    return rule;
  }

  const std::vector<std::size_t>& chunks_;
  const Variant variant_;
  const std::size_t memory_;
  const std::size_t known_chunks_;
  const std::size_t total_;  // Memory, in FABs.
  std::size_t faa_;
  std::size_t law_;
  std::vector<Filled> filled_;  // By position in the stream.
  std::size_t begin_ = 0;       // Start of the first FAB.
  std::size_t entered_ = 0;     // End of the FAA.
  std::size_t law_end_ = 0;
  std::size_t known_end_ = 0;
  std::size_t cache_max_ = 0;
  std::vector<Future> f_;
  std::vector<std::size_t> p_;  // Most recently used last.
  std::size_t added_ = 0;       // Chunks that became F-chunks in this cycle.
  std::size_t effective_ = 0;
};

std::vector<Line> log_of(const TraceReplay& engine) {
  std::vector<Line> log;
  for (const EngineCycle& cycle : engine.cycles) {
    EXPECT_EQ(cycle.number, log.size());
    log.push_back({cycle.sizes.forward, cycle.sizes.window, cycle.containers_read,
                   cycle.future_bytes / kChunk, cycle.past_bytes / kChunk, cycle.rule});
  }
  return log;
}

struct Published {
  std::string engine;
  Variant variant;
};

std::ostream& operator<<(std::ostream& out, const Published& published) {
  return out << published.engine;
}

class AlaccContract : public testing::TestWithParam<Published> {};

TEST_P(AlaccContract, EveryCycleHasThePublishedSizesReadsAndCache) {
  std::set<AlaccRule> rules;
  for (const auto& trace : {phases(), sequential_with_drift(120), scattered(120, 20),
                            skewed(60, 120), cyclic(25, 5), random_chunks(40, 80, 7)}) {
    for (const std::size_t containers : {5U, 15U}) {
      SCOPED_TRACE(trace->name() + ", " + std::to_string(containers) + " containers");
      const TraceReplay engine = replay(*trace, GetParam().engine, containers);
      const auto expected = PublishedAlacc(*trace, engine, GetParam().variant).run();
      const auto log = log_of(engine);
      ASSERT_EQ(log.size(), expected.size());
      std::set<std::pair<std::size_t, std::size_t>> sizes;
      for (std::size_t i = 0; i < log.size(); ++i) {
        ASSERT_EQ(log[i], expected[i]) << "cycle " << i;
        sizes.emplace(log[i].faa, log[i].law);
        rules.insert(log[i].rule);
      }
      EXPECT_GT(sizes.size(), 3U) << "the engine did not adapt";
    }
  }
  EXPECT_EQ(rules.size(), 5U) << "the traces must make every rule act";
}

INSTANTIATE_TEST_SUITE_P(Engines, AlaccContract,
                         testing::Values(Published{"alacc-paper", {}},
                                         Published{"alacc-f80", {0.8, true}}),
                         [](const auto& engine) {
                           std::string name = engine.param.engine;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace varve::restore
