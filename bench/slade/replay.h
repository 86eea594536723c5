// SPDX-License-Identifier: Apache-2.0
// TLE-LRU as a cache of contents, and the replay of streams through a cache.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/ids.h"
#include "index/recency_order.h"
#include "index/tle_cache.h"
#include "slade/policies.h"
#include "slade/streams.h"

namespace varve::bench {

using Streams = std::vector<ContentStream>;

inline index::Tag tag_of_content(std::uint64_t content) {
  index::Tag tag;
  Random bytes(content);
  base::store_le(tag.data(), bytes.next());
  base::store_le(tag.data() + 8, bytes.next());
  base::store_le(tag.data() + 12, bytes.next());
  return tag;
}

/// Sums of the estimates' errors.
struct EstimateErrors {
  std::uint64_t estimates = 0;
  double distinct_error = 0;  ///< Error of the number of contents, relative to it.
  double sample_error = 0;    ///< The same if the sample's duplicates are scaled up.
  double ms = 0;
  double ms_max = 0;
};

/// TleCache with the memory of a number of entries. The samples of a cache of 2^20 entries take 1 %
/// of the memory for the shares, and 2 % for the estimates.
class TlePolicy final : public ContentCache {
 public:
  explicit TlePolicy(std::size_t memory_entries,
                     index::EvictionRule rule = index::EvictionRule::kShares,
                     bool adapts_threshold = false, bool estimates_unseen = true,
                     bool checks = false)
      : adapts_threshold_(adapts_threshold), checks_(checks), unseen_(estimates_unseen) {
    index::TleOptions options;
    const auto samples = rule == index::EvictionRule::kShares
                             ? memory_entries / 100
                             : memory_entries * 9 / 10 * 15 / 100 * 8 / 48;
    options.entries = memory_entries - samples;
    options.estimates_unseen = estimates_unseen;
    options.rule = rule;
    cache_ = std::make_unique<index::TleCache>(options);
  }
  void join(std::size_t stream) override {
    slots_.resize(std::max(slots_.size(), stream + 1));
    thresholds_.resize(slots_.size());
    seen_.resize(slots_.size() + 1);
    slots_[stream] = cache_->join();
  }
  std::optional<std::uint64_t> arrive(std::size_t stream, std::uint64_t content) override {
    const auto tag = tag_of_content(content);
    const auto id = cache_->find(tag);
    cache_->arrive(slots_[stream], tag, id.has_value());
    if (checks_) seen_[slots_[stream]].insert(content);
    if (cache_->wants_estimates()) update();
    if (!id) return std::nullopt;
    return id->value - kFirstPoolId.value;
  }
  void use(std::size_t stream, std::uint64_t content, std::uint64_t id) override {
    cache_->use(slots_[stream], {tag_of_content(content), kFirstPoolId.plus(id)});
  }
  [[nodiscard]] std::uint64_t threshold(std::size_t stream) const override {
    return adapts_threshold_ ? thresholds_[stream].value() : 1;
  }
  void note_run(std::size_t stream, std::uint64_t length) override {
    thresholds_[stream].note_duplicates(length);
  }
  [[nodiscard]] const EstimateErrors& errors() const { return errors_; }
  std::size_t memory_max = 0;

 private:
  void update() {
    memory_max = std::max(memory_max, cache_->memory_bytes());
    std::vector<index::StreamEstimate> estimates;
    for (auto& sample : cache_->take_samples()) {
      const auto copy = checks_ ? sample : index::StreamSample();
      const auto begin = std::chrono::steady_clock::now();
      estimates.push_back(index::TleCache::estimate(std::move(sample), unseen_));
      const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
      const auto& one = estimates.back();
      ++errors_.estimates;
      errors_.ms += ms.count();
      errors_.ms_max = std::max(errors_.ms_max, ms.count());
      if (checks_) {
        const auto distinct = static_cast<double>(seen_[one.of.slot].size());
        const auto error = [&](double locality) {
          return std::abs(static_cast<double>(one.of.arrivals) - locality - distinct) / distinct;
        };
        errors_.distinct_error += error(one.locality);
        errors_.sample_error += error(index::TleCache::estimate(copy, false).locality);
      }
    }
    for (auto& set : seen_) set.clear();
    cache_->apply(estimates);
    for (const auto& one : estimates) {
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i] == one.of.slot) thresholds_[i].update(one.of.arrivals, one.of.hits);
      }
    }
  }

  const bool adapts_threshold_;
  const bool checks_;
  const bool unseen_;
  std::unique_ptr<index::TleCache> cache_;
  std::vector<index::StreamSlot> slots_;
  std::vector<index::RunThreshold> thresholds_;
  std::vector<std::unordered_set<std::uint64_t>> seen_;
  EstimateErrors errors_;
};

/// Outcome of one cache for a workload.
struct Outcome {
  std::uint64_t duplicates = 0;
  std::uint64_t found = 0;              ///< Without those in runs shorter than the threshold.
  std::vector<std::uint64_t> found_in;  ///< By stream, with short runs.
  [[nodiscard]] double ratio() const {
    return 100 * static_cast<double>(found) / static_cast<double>(duplicates);
  }
};

/// Sends the streams through a cache, as Varve does: a batch is looked up, then its short runs and
/// its new contents are stored.
inline Outcome run(ContentCache& cache, const Streams& streams, std::uint64_t seed) {
  Outcome outcome;
  outcome.found_in.resize(streams.size());
  std::unordered_set<std::uint64_t> all;
  struct State {
    std::uint64_t next_id = 0;
    std::uint64_t run = 0;
    std::uint64_t last = 0;
  };
  std::vector<State> states(streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    states[i].next_id = i << 32;
    cache.join(i);
  }
  std::vector<std::optional<std::uint64_t>> ids;
  interleave(streams, seed, [&](std::size_t stream, std::span<const std::uint64_t> contents) {
    State& state = states[stream];
    ids.clear();
    const auto end_run = [&](std::size_t first, std::size_t end) {
      cache.note_run(stream, state.run);
      if (state.run < cache.threshold(stream)) {
        outcome.found -= end - first;
        for (auto i = first; i < end; ++i) {
          cache.use(stream, contents[i], ids[i].emplace(state.next_id++));
        }
      }
      state.run = 0;
    };
    std::size_t first = 0;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      outcome.duplicates += all.insert(contents[i]).second ? 0 : 1;
      ids.push_back(cache.arrive(stream, contents[i]));
      const auto id = ids.back();
      const bool goes_on = id && state.run != 0 && (*id == state.last || *id == state.last + 1);
      if (!goes_on && state.run != 0) end_run(first, i);
      if (!goes_on) first = i;
      cache.use(stream, contents[i], id ? *id : state.next_id++);
      if (!id) continue;
      ++outcome.found;
      ++outcome.found_in[stream];
      ++state.run;
      state.last = *id;
    }
  });
  return outcome;
}

/// Returns the duplicates that the best fixed partition of the entries would find, each stream
/// alone with a part of them: a reference that knows the whole streams.
inline std::uint64_t best_partition(const Streams& streams, std::size_t entries) {
  constexpr std::size_t kUnits = 128;
  std::vector<std::uint64_t> best(kUnits + 1);  // By the units given so far.
  for (const auto& stream : streams) {
    struct Use {
      index::RecencyOrder::Item item = 0;
      index::RecencyOrder::Time time = 0;
    };
    std::unordered_map<std::uint64_t, Use> uses;
    std::vector<Use*> by_item;
    index::RecencyOrder order;
    std::vector<std::uint64_t> found(kUnits + 1);  // By units.
    for (const auto content : stream.contents) {
      Use& use = uses[content];
      if (use.item == 0) {
        by_item.push_back(&use);
        use.item = static_cast<index::RecencyOrder::Item>(by_item.size());
      } else {
        const auto units = order.newer_than(use.time) * kUnits / entries + 1;
        if (units <= kUnits) ++found[units];
        order.remove(use.time);
      }
      use.time =
          order.push(use.item, [&](auto item, auto time) { by_item[item - 1]->time = time; });
    }
    for (std::size_t units = 1; units <= kUnits; ++units) found[units] += found[units - 1];
    const auto before = best;
    for (std::size_t all = 0; all <= kUnits; ++all) {
      for (std::size_t units = 0; units <= all; ++units) {
        best[all] = std::max(best[all], before[all - units] + found[units]);
      }
    }
  }
  return best[kUnits];
}

}  // namespace varve::bench
