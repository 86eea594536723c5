// SPDX-License-Identifier: Apache-2.0
// Compares the rules of TleCache, the cache of the pool's stream index, with other caches of
// fingerprints: the share of the duplicates that each finds at once, its memory, and the estimates.
//
// usage: bench-slade [--arrivals N] [--entries N]… [--seed N] [--no-draws]
//        bench-slade [--entries N]… [--no-draws] --trees NAME=TREE[,TREE…] NAME=TREE…
// The first form generates the workloads. --no-draws leaves out TLE-LRU, whose estimates take most
// of the time. With --trees, each NAME is a stream that stores its trees
// one after the other; the streams are interleaved.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "chunk_tree.h"
#include "slade/policies.h"
#include "slade/replay.h"
#include "slade/streams.h"

namespace varve::bench {
namespace {

double percent(std::uint64_t part, std::uint64_t all) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(all, 1));
}

// Prints what the generated two hours have of tables 1 and 2 of the paper.
void print_two_hours(std::uint64_t seed) {
  const auto streams = two_hours(seed);
  LruCache lru(kPublishedEntries);
  LfuCache lfu(kPublishedEntries);
  const auto by_lru = run(lru, streams, seed);
  const auto by_lfu = run(lfu, streams, seed);
  fmt::print(
      "Two hours, with the published figures in brackets. LRU finds {:.1f} % of the "
      "duplicates.\n\n| trace | writes | duplicates, % | in runs ≥ 2, % | in runs ≥ 16, % | of "
      "what "
      "LRU found, % | of what LFU found, % |\n|---|---|---|---|---|---|---|\n",
      by_lru.ratio());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const auto& kind = trace_kinds()[i];
    const auto its = statistics_of(streams[i].contents);
    fmt::print(
        "| {} | {} ({}) | {:.1f} ({:.1f}) | {:.1f} ({:.1f}) | {:.1f} ({:.1f}) | {:.2f} ({:.2f}) | "
        "{:.2f} ({:.2f}) |\n",
        kind.name, streams[i].contents.size(), kind.written(), 100 * its.duplicates,
        100 * kind.duplicates, 100 * its.in_runs_of_2, 100 * kind.in_runs_of_2,
        100 * its.in_runs_of_16, 100 * kind.in_runs_of_16,
        percent(by_lru.found_in[i], by_lru.found), 100 * kind.found_by_lru,
        percent(by_lfu.found_in[i], by_lfu.found), 100 * kind.found_by_lfu);
  }
}

void print_header() {
  fmt::print(
      "\n| workload | entries | LRU | LFU | ARC | best partition | shares | of LRU | memory, % "
      "more "
      "| published draw | of LRU | draw | of LRU | draw, samples only | estimate, ms (most) | "
      "error, % (samples only) | iDedup-LRU, T = 4 | T = 16 | shares with T | of iDedup 4 "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

void compare(const std::string& name, const Streams& streams, std::size_t entries,
             std::uint64_t seed, bool with_draws) {
  using Rule = index::EvictionRule;
  const auto ratio = [&](ContentCache&& cache) { return run(cache, streams, seed).ratio(); };
  const auto more = [](double one, double other) { return 100 * (one / other - 1); };
  LruCache plain(entries);
  const auto by_lru = run(plain, streams, seed);
  const double lru = by_lru.ratio();
  TlePolicy shares(entries);
  const double found = run(shares, streams, seed).ratio();
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} % | {:+.1f} |", name,
             entries, lru, ratio(LfuCache(entries)), ratio(ArcCache(entries)),
             percent(best_partition(streams, entries), by_lru.duplicates), found, more(found, lru),
             more(static_cast<double>(shares.memory_max), 48 * static_cast<double>(entries)));
  if (with_draws) {
    const double published = ratio(TlePolicy(entries, Rule::kPublished));
    TlePolicy tle(entries, Rule::kLocality, false, true, true);
    const double drawn = run(tle, streams, seed).ratio();
    const double samples = ratio(TlePolicy(entries, Rule::kLocality, false, false));
    const auto& errors = tle.errors();
    const auto count = static_cast<double>(std::max<std::uint64_t>(errors.estimates, 1));
    fmt::print(
        " {:.1f} | {:+.1f} % | {:.1f} | {:+.1f} % | {:.1f} | {:.1f} ({:.1f}) | {:.1f} "
        "({:.1f}) |",
        published, more(published, lru), drawn, more(drawn, lru), samples, errors.ms / count,
        errors.ms_max, 100 * errors.distinct_error / count, 100 * errors.sample_error / count);
  } else {
    fmt::print(" – | – | – | – | – | – | – |");
  }
  const double four = ratio(LruCache(entries, 4));
  const double sixteen = ratio(LruCache(entries, 16));
  const double whole = ratio(TlePolicy(entries, Rule::kShares, true));
  fmt::print(" {:.1f} | {:.1f} | {:.1f} | {:+.1f} % |\n", four, sixteen, whole, more(whole, four));
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
  bool with_draws = true;
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
    } else if (args[i] == "--no-draws") {
      with_draws = false;
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
               "usage: bench-slade [--arrivals N] [--entries N]… [--seed N] [--no-draws]\n"
               "       bench-slade [--entries N]… [--no-draws] --trees NAME=TREE[,TREE…]…\n");
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
    for (const auto size : entries) compare("trees", *trees, size, seed, with_draws);
    return 0;
  }
  // As parts of all writes, the published caches of 40, 160 and 320 MB.
  if (entries.empty()) entries = {arrivals * 2 / 1000, arrivals * 9 / 1000, arrivals * 18 / 1000};
  print_two_hours(seed);
  print_header();
  const std::pair<int, int> mixes[] = {{3, 1}, {1, 1}, {1, 3}};
  for (const auto& [good, weak] : mixes) {
    const auto streams = generated_streams(good, weak, arrivals, seed);
    for (const auto size : entries) {
      compare(fmt::format("{}:{}", good, weak), streams, size, seed, with_draws);
    }
  }
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::main_of({argv + 1, argv + argc}); }
