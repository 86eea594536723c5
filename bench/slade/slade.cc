// SPDX-License-Identifier: Apache-2.0
// Compares TLE-LRU, the cache of the pool's stream index, with other caches of fingerprints: the
// share of the duplicates that each finds at once, its memory, and the estimates.
//
// usage: bench-slade [--arrivals N] [--entries N] [--seed N]
//        bench-slade [--entries N] --trees NAME=TREE[,TREE…] NAME=TREE…
// The first form generates the workloads. With --trees, each NAME is a stream that stores its trees
// one after the other; the streams are interleaved.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/ids.h"
#include "chunk_tree.h"
#include "index/tle_cache.h"
#include "slade/policies.h"
#include "slade/streams.h"

namespace varve::bench {
namespace {

using Streams = std::vector<ContentStream>;

index::Tag tag_of_content(std::uint64_t content) {
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

/// TLE-LRU with the memory of a number of entries: its samples take some of them.
class TlePolicy final : public ContentCache {
 public:
  TlePolicy(std::size_t memory_entries, bool adapts_threshold, bool estimates_unseen = true,
            bool weighs_entries = true, bool checks = false)
      : adapts_threshold_(adapts_threshold), checks_(checks) {
    index::TleOptions options;
    options.entries = memory_entries - memory_entries * 9 / 10 * 15 / 100 * 8 / 48;
    options.estimates_unseen = estimates_unseen;
    options.weighs_entries = weighs_entries;
    unseen_ = estimates_unseen;
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
  bool unseen_ = true;
  std::unique_ptr<index::TleCache> cache_;
  std::vector<index::StreamSlot> slots_;
  std::vector<index::RunThreshold> thresholds_;
  std::vector<std::unordered_set<std::uint64_t>> seen_;
  EstimateErrors errors_;
};

/// Outcome of one cache for a workload.
struct Outcome {
  std::uint64_t duplicates = 0;
  std::uint64_t found = 0;  ///< Without those in runs shorter than the threshold.
  [[nodiscard]] double ratio() const {
    return 100 * static_cast<double>(found) / static_cast<double>(duplicates);
  }
};

/// Sends the streams through a cache, as Varve does: a batch is looked up, then its short runs and
/// its new contents are stored.
Outcome run(ContentCache& cache, const Streams& streams, std::uint64_t seed) {
  Outcome outcome;
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
      ++state.run;
      state.last = *id;
    }
  });
  return outcome;
}

void print_statistics(const Streams& streams) {
  fmt::print(
      "| kind | streams | contents | duplicates, % (published) | in runs ≥ 2, % (published) | in "
      "runs ≥ 16, % (published) | distance, median | 90 % |\n|---|---|---|---|---|---|---|---|\n");
  for (const auto& kind : trace_kinds()) {
    std::size_t count = 0;
    std::size_t contents = 0;
    StreamStatistics sum;
    for (const auto& one : streams) {
      if (one.name != kind.name) continue;
      const auto its = statistics_of(one.contents);
      ++count;
      contents += one.contents.size();
      sum.duplicates += its.duplicates;
      sum.in_runs_of_2 += its.in_runs_of_2;
      sum.in_runs_of_16 += its.in_runs_of_16;
      sum.distance_median += its.distance_median;
      sum.distance_90 += its.distance_90;
    }
    if (count == 0) continue;
    const auto mean = [&](double value) { return 100 * value / static_cast<double>(count); };
    fmt::print("| {} | {} | {} | {:.1f} ({:.1f}) | {:.1f} ({:.1f}) | {:.1f} ({:.1f}) | {} | {} |\n",
               kind.name, count, contents, mean(sum.duplicates), 100 * kind.duplicates,
               mean(sum.in_runs_of_2), 100 * kind.in_runs_of_2, mean(sum.in_runs_of_16),
               100 * kind.in_runs_of_16, sum.distance_median / count, sum.distance_90 / count);
  }
}

void print_header() {
  fmt::print(
      "\n| workload | entries | LRU | LFU | ARC | TLE, samples only | TLE-LRU, published "
      "draw | "
      "TLE-LRU | of LRU | "
      "iDedup-LRU, "
      "T = 4 | iDedup-LRU, T = 16 | SLADE | of iDedup 4 | memory, % more | estimate, ms (most) | "
      "error, % (samples only) "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

void compare(const std::string& name, const Streams& streams, std::size_t entries,
             std::uint64_t seed) {
  const auto ratio = [&](ContentCache&& cache) { return run(cache, streams, seed).ratio(); };
  const double lru = ratio(LruCache(entries));
  const double lfu = ratio(LfuCache(entries));
  const double arc = ratio(ArcCache(entries));
  const double samples = ratio(TlePolicy(entries, false, false));
  const double published = ratio(TlePolicy(entries, false, true, false));
  TlePolicy tle(entries, false, true, true, true);
  const double found = run(tle, streams, seed).ratio();
  const double four = ratio(LruCache(entries, 4));
  const double sixteen = ratio(LruCache(entries, 16));
  TlePolicy slade(entries, true);
  const double whole = run(slade, streams, seed).ratio();
  const auto& errors = tle.errors();
  const auto count = static_cast<double>(std::max<std::uint64_t>(errors.estimates, 1));
  const auto more = [](double one, double other) { return 100 * (one / other - 1); };
  fmt::print(
      "| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} % | {:.1f} | "
      "{:.1f} | "
      "{:.1f} | {:+.1f} % | {:+.1f} | {:.1f} ({:.1f}) | {:.1f} ({:.1f}) |\n",
      name, entries, lru, lfu, arc, samples, published, found, more(found, lru), four, sixteen,
      whole, more(whole, four),
      more(static_cast<double>(tle.memory_max), 48 * static_cast<double>(entries)),
      errors.ms / count, errors.ms_max, 100 * errors.distinct_error / count,
      100 * errors.sample_error / count);
  std::fflush(stdout);
}

std::optional<Streams> streams_of_trees(const std::vector<std::string>& words) {
  const auto chunker = ingest::make_chunker("gear16", ingest::ChunkSizes{});
  if (!chunker) return std::nullopt;
  Streams streams;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    auto& stream = streams.emplace_back();
    stream.name = word.substr(0, equals);
    for (std::size_t at = equals + 1; at <= word.size();) {
      const auto end = std::min(word.find(',', at), word.size());
      cut_tree(**chunker, word.substr(at, end - at), [&](std::span<const std::byte> chunk) {
        stream.contents.push_back(base::load_le<std::uint64_t>(fingerprint_of_chunk(chunk).data()));
      });
      at = end + 1;
    }
  }
  return streams;
}

int main_of(const std::vector<std::string>& args) {
  std::size_t arrivals = 4'000'000;
  std::vector<std::size_t> entries;
  std::uint64_t seed = 1;
  bool has_trees = false;
  std::vector<std::string> words;
  bool ok = true;
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::uint64_t number = 0;
    const auto read = [&] {
      const auto& text = args[++i];
      ok = ok && std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
    };
    if (args[i] == "--trees") {
      has_trees = true;
    } else if (args[i].starts_with("--") && i + 1 < args.size()) {
      const auto option = args[i];
      read();
      if (option == "--arrivals")
        arrivals = number;
      else if (option == "--entries")
        entries.push_back(number);
      else if (option == "--seed")
        seed = number;
      else
        ok = false;
    } else {
      words.push_back(args[i]);
    }
  }
  const auto trees = has_trees ? streams_of_trees(words) : Streams();
  if (!ok || has_trees == words.empty() || !trees) {
    fmt::print(stderr,
               "usage: bench-slade [--arrivals N] [--entries N]… [--seed N]\n"
               "       bench-slade [--entries N]… --trees NAME=TREE[,TREE…]…\n");
    return 1;
  }
  if (has_trees) {
    std::size_t chunks = 0;
    std::unordered_set<std::uint64_t> different;
    for (const auto& one : *trees) {
      chunks += one.contents.size();
      different.insert(one.contents.begin(), one.contents.end());
    }
    fmt::print("{} streams, {} chunks, {} different\n", trees->size(), chunks, different.size());
    if (entries.empty()) entries = {different.size() / 16, different.size() / 4};
    print_header();
    for (const auto size : entries) compare("trees", *trees, size, seed);
    return 0;
  }
  if (entries.empty()) entries = {arrivals / 256, arrivals / 64, arrivals / 16};
  const std::pair<int, int> mixes[] = {{3, 1}, {1, 1}, {1, 3}};
  for (const auto& [good, weak] : mixes) {
    const auto streams = generated_streams(good, weak, arrivals, seed);
    if (good == weak) print_statistics(streams);
  }
  print_header();
  for (const auto& [good, weak] : mixes) {
    const auto streams = generated_streams(good, weak, arrivals, seed);
    for (const auto size : entries) compare(fmt::format("{}:{}", good, weak), streams, size, seed);
  }
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::main_of({argv + 1, argv + argc}); }
