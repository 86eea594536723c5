// SPDX-License-Identifier: Apache-2.0
// Measures what the rewriting policies cost and gain: stores series of several kinds in a pool
// without bytes, and counts the containers that restores of the last versions read.
//
//   bench-har [--kind NAME] [--policy NAME] [--versions N] [--chunks N] [--seed N] [--last N]
//             [--alacc N] [--each 1]
//
// The last N versions are measured with caches of whole containers, by last use and by next use
// (Belady), and the last `--alacc` of them also with Varve's engine, which has the same memory for
// assembly and cache. It reads whole containers, as the published engines do; then slices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "avar/series_kinds.h"
#include "har/engine_reads.h"
#include "har/restore_reads.h"
#include "har/simulated_pool.h"
#include "ingest/placement_policy.h"
#include "options.h"
#include "varve/rewrite.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)

constexpr std::array<Rewrite, 6> kPolicies = {Rewrite::kNone, Rewrite::kHar,    Rewrite::kCap,
                                              Rewrite::kCbr,  Rewrite::kHarCap, Rewrite::kHarCbr};
constexpr std::array<std::size_t, 4> kCacheMiB = {16, 64, 256, 512};
constexpr std::size_t kContainerMiB = bench::SimulatedPool::kContainerBytes >> 20;
/// The name of a kind that is not one of bench::kKinds: images, 15 % of which repeat other parts.
constexpr std::string_view kRepeating = "repeating";
constexpr std::string_view kEngine = "alacc";

struct Run {
  std::size_t versions = 100;
  std::size_t chunks = 65536;
  std::uint64_t seed = 1;
  std::size_t last = 20;
  std::size_t alacc = 4;
  std::size_t each = 0;  // Not 0: prints each version.
  std::string kind;
  std::string policy;
};

/// The versions of a series, made once for all policies.
struct Series {
  std::vector<std::vector<bench::Content>> versions;
  std::vector<std::uint32_t> bytes_of;
};

/// Returns the content that each content of the first version copies: runs of twelve chunks on
/// average, half of them from nearby.
std::vector<bench::Content> repetitions(std::size_t count, std::uint64_t seed) {
  std::vector<bench::Content> original(count);
  for (std::size_t i = 0; i < count; ++i) original[i] = static_cast<bench::Content>(i);
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> length(1.0 / 12);
  for (std::size_t done = 0; done < count * 15 / 100;) {
    const auto run = std::min<std::size_t>(1 + static_cast<std::size_t>(length(random)), 200);
    const std::size_t from = random() % (count - run);
    const std::size_t distance = 1 + random() % (random() % 2 == 0 ? 3000 : count);
    const std::size_t to = (from + distance) % (count - run);
    for (std::size_t i = 0; i < run; ++i) original[to + i] = original[from + i];
    done += run;
  }
  return original;
}

Series make_series(std::string_view name, bench::KindSource::Kind kind, const Run& run) {
  bench::KindSource source(kind, run.chunks, run.seed);
  std::vector<bench::Content> original;
  if (name == kRepeating) original = repetitions(run.chunks, run.seed + 1);
  Series series;
  for (std::size_t i = 0; i < run.versions; ++i) {
    if (i != 0) source.next_version();
    series.versions.push_back(source.stream());
    for (auto& content : series.versions.back()) {
      if (content < original.size()) content = original[content];
      while (series.bytes_of.size() <= content) {
        series.bytes_of.push_back(static_cast<std::uint32_t>(
            source.bytes_of(static_cast<bench::Content>(series.bytes_of.size()))));
      }
    }
  }
  return series;
}

/// MiB restored for each 4 MiB read, one for each cache.
using Speeds = std::array<double, kCacheMiB.size()>;

/// The figures of one version, or their mean.
struct Figures {
  double used = 0;        // Mean utilisation of the version's containers.
  Speeds lru{};           // Reading whole containers.
  Speeds belady{};        // Reading whole containers.
  Speeds alacc{};         // Reading whole containers.
  Speeds alacc_slices{};  // By bytes.
  Speeds alacc_visits{};  // The same reads, by visits of containers.

  void add(const Figures& other, double weight) {
    used += weight * other.used;
    for (std::size_t i = 0; i < lru.size(); ++i) {
      lru[i] += weight * other.lru[i];
      belady[i] += weight * other.belady[i];
    }
  }
  void add_alacc(const Figures& other, double weight) {
    for (std::size_t i = 0; i < alacc.size(); ++i) {
      alacc[i] += weight * other.alacc[i];
      alacc_slices[i] += weight * other.alacc_slices[i];
      alacc_visits[i] += weight * other.alacc_visits[i];
    }
  }
};

std::string text_of(const Figures& figures) {
  std::string text = fmt::format("{:5.1f} % |", 100 * figures.used);
  for (const auto& speeds :
       {figures.lru, figures.belady, figures.alacc, figures.alacc_slices, figures.alacc_visits}) {
    for (const double one : speeds) text += fmt::format(" {:5.2f}", one);
    text += " |";
  }
  return text;
}

double mib_of(const ingest::RewriteInput& use) {
  return static_cast<double>(use.logical_bytes) / (1 << 20);
}

void measure_caches(const std::vector<bench::StoredChunk>& chunks, const ingest::RewriteInput& use,
                    Figures& figures) {
  std::vector<std::uint32_t> containers;
  for (const auto& chunk : chunks) {
    if (containers.empty() || containers.back() != chunk.container) {
      containers.push_back(chunk.container);
    }
  }
  for (const auto& one : use.containers) {
    figures.used += static_cast<double>(one.referenced_bytes) / static_cast<double>(one.raw_bytes);
  }
  figures.used /= static_cast<double>(use.containers.size());
  for (std::size_t i = 0; i < kCacheMiB.size(); ++i) {
    const std::size_t cache = kCacheMiB[i] / kContainerMiB;
    figures.lru[i] = mib_of(use) / static_cast<double>(bench::lru_reads(containers, cache));
    figures.belady[i] = mib_of(use) / static_cast<double>(bench::belady_reads(containers, cache));
  }
}

void measure_alacc(bench::SimulatedSource& source, const std::vector<bench::StoredChunk>& chunks,
                   const ingest::RewriteInput& use, Figures& figures) {
  for (std::size_t i = 0; i < kCacheMiB.size(); ++i) {
    const std::size_t memory = kCacheMiB[i] << 20;
    const auto whole = bench::engine_reads(source, chunks, kEngine, memory, true);
    const auto slices = bench::engine_reads(source, chunks, kEngine, memory, false);
    figures.alacc[i] = mib_of(use) / static_cast<double>(whole.containers);
    figures.alacc_visits[i] = mib_of(use) / static_cast<double>(slices.containers);
    figures.alacc_slices[i] = static_cast<double>(kContainerMiB) *
                              static_cast<double>(use.logical_bytes) /
                              static_cast<double>(slices.bytes);
  }
}

struct Outcome {
  double ratio = 0;  // Logical bytes for each stored byte.
  Figures mean;      // Of the last versions.
};

Outcome store(const Series& series, Rewrite rewrite, const Run& run, const Outcome* none) {
  bench::SimulatedPool pool;
  bench::SimulatedSource source;
  ingest::RewriteInput input;
  Outcome outcome;
  std::uint64_t logical = 0;
  std::uint64_t rewritten = 0;
  double most = 0;
  for (std::size_t i = 0; i < series.versions.size(); ++i) {
    ingest::PlacementPolicy policy(Placement::kPool, ingest::make_rewrite_policy(rewrite, input));
    const auto chunks = pool.store(series.versions[i], series.bytes_of, policy);
    input = pool.use_by(chunks);
    Figures figures;
    const std::size_t left = series.versions.size() - i;
    if (left <= run.last || run.each != 0) measure_caches(chunks, input, figures);
    if (left <= run.alacc) {
      source.update(pool);
      measure_alacc(source, chunks, input, figures);
      outcome.mean.add_alacc(figures, 1 / static_cast<double>(run.alacc));
    }
    const auto counts = policy.counts();
    logical += input.logical_bytes;
    rewritten += counts.rewritten_bytes;
    const double share =
        static_cast<double>(counts.rewritten_bytes) / static_cast<double>(input.logical_bytes);
    most = std::max(most, share);
    if (left <= run.last) outcome.mean.add(figures, 1 / static_cast<double>(run.last));
    if (run.each != 0) {
      fmt::print("  {:<8} {:>3}: rewritten {:5.2f} %, {:>3} sparse | {}\n", rewrite_name(rewrite),
                 i + 1, 100 * share, counts.sparse_containers, text_of(figures));
    }
  }
  outcome.ratio = static_cast<double>(logical) / static_cast<double>(pool.stored_bytes());
  const double lost = none == nullptr ? 0 : 1 - outcome.ratio / none->ratio;
  fmt::print("{:<8} | {:6.2f} | {:4.1f} % | {:5.2f} % | {:5.2f} % | {}\n", rewrite_name(rewrite),
             outcome.ratio, 100 * lost,
             100 * static_cast<double>(rewritten) / static_cast<double>(logical), 100 * most,
             text_of(outcome.mean));
  std::fflush(stdout);
  return outcome;
}

void compare(std::string_view name, bench::KindSource::Kind kind, const Run& run) {
  const Series series = make_series(name, kind, run);
  fmt::print("{}: {} versions of {} chunks; means of the last {}, of {} with {}\n", name,
             run.versions, run.chunks, run.last, run.alacc, kEngine);
  fmt::print(
      "policy   | ratio  | lost   | again   | most    | used    | caches of {} MiB: LRU | Belady | "
      "alacc | its slices, by bytes | by visits\n",
      fmt::join(kCacheMiB, ", "));
  Outcome none;
  for (const auto rewrite : kPolicies) {
    const bool is_none = rewrite == Rewrite::kNone;
    if (!is_none && !run.policy.empty() && run.policy != rewrite_name(rewrite)) continue;
    const auto outcome = store(series, rewrite, run, is_none ? nullptr : &none);
    if (is_none) none = outcome;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Run run;
  const bool understood = bench::read_options(argc, argv, 1,
                                              {{"--kind", bench::text_option(run.kind)},
                                               {"--policy", bench::text_option(run.policy)},
                                               {"--versions", bench::number_option(run.versions)},
                                               {"--chunks", bench::number_option(run.chunks)},
                                               {"--seed", bench::number_option(run.seed)},
                                               {"--last", bench::number_option(run.last)},
                                               {"--alacc", bench::number_option(run.alacc)},
                                               {"--each", bench::number_option(run.each)}});
  if (!understood || run.versions == 0) {
    fmt::print(stderr,
               "usage: bench-har [--kind NAME] [--policy NAME] [--versions N] [--chunks N] "
               "[--seed N] [--last N] [--alacc N] [--each 1]\n");
    return 2;
  }
  run.last = std::clamp<std::size_t>(run.last, 1, run.versions);
  run.alacc = std::min(run.alacc, run.versions);
  const auto is_wanted = [&run](std::string_view name) {
    return run.kind.empty() || run.kind == name;
  };
  for (const auto& kind : bench::kKinds) {
    if (is_wanted(kind.name)) compare(kind.name, kind.kind, run);
  }
  if (is_wanted(kRepeating)) compare(kRepeating, bench::KindSource::Kind::kImages, run);
  return 0;
}
