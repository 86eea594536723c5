// SPDX-License-Identifier: Apache-2.0
// Measures the reads and the computing time of each restore engine, with the same memory and
// versions, in four layouts.
//
//   bench-restore-engines DIRECTORY [--versions N] [--chunks N] [--memory MIB] [--log ENGINE]
//                        [--fix-step N]
//
// "Speed factor" is restored MiB per container read, as published engines read: whole
// containers. "Extents" is restored MiB per 4 MiB read by requests planned from the window, with
// the number of requests per 100 MiB. The memory holds forward assembly and cache; the
// window's table and one request's buffer are extra.
//
// "fix-opt" is the best of all fixed sizes of ALACC's parts, as the publication searches it: every
// size of the forward area, with windows from the memory to six times as much in steps of
// `--fix-step` areas (default 16; 0 leaves it out).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "restore/restore_engine.h"
#include "restore/window_engine.h"
#include "restore_engines/engine_parts.h"
#include "restore_engines/traces.h"
#include "support.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)
using bench::must;
using bench::Trace;

constexpr double kMiB = 1U << 20;
constexpr const char* kFixOpt = "fix-opt";

/// Returns the names of all engines.
std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const auto& engine : restore::engine_infos()) names.emplace_back(engine.name);
  return names;
}

/// Counts the reads from another source, and their time.
class CountingSource final : public layout::ChunkSource {
 public:
  explicit CountingSource(layout::ChunkSource& source) : source_(source) {}

  const format::FrameCodec& codec() const override { return source_.codec(); }
  Result<layout::LocationRun> locate(ChunkId id) override { return source_.locate(id); }
  Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) override {
    return source_.header(container);
  }
  Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                         std::span<std::byte> out) override {
    const double begin = bench::thread_cpu_seconds();
    auto result = source_.read_data(container, offset, out);
    seconds_ += bench::thread_cpu_seconds() - begin;
    return result;
  }
  Result<std::uint64_t> place_of(ContainerNumber container) override {
    return source_.place_of(container);
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  layout::ChunkSource& source_;
  double seconds_ = 0;
};

class CycleLog final : public restore::EngineObserver {
 public:
  explicit CycleLog(bool print) : print_(print) {}
  void on_cycle(const restore::EngineCycle& cycle) override {
    ++cycles_;
    containers_ += cycle.containers_read;
    forward_ += static_cast<double>(cycle.sizes.forward);
    window_ += static_cast<double>(cycle.sizes.window);
    ++rules_[static_cast<std::size_t>(cycle.rule)];
    if (!print_) return;
    fmt::print(
        "    cycle {:>4}: forward {:>2}, cache {:>2}, window {:>3}; {:>2} containers, F {:>5.1f} "
        "MiB, P {:>5.1f} MiB; {}\n",
        cycle.number, cycle.sizes.forward, cycle.memory - cycle.sizes.forward, cycle.sizes.window,
        cycle.containers_read, static_cast<double>(cycle.future_bytes) / kMiB,
        static_cast<double>(cycle.past_bytes) / kMiB, kRules[static_cast<std::size_t>(cycle.rule)]);
  }
  [[nodiscard]] std::size_t containers() const { return containers_; }
  [[nodiscard]] double mean_forward() const { return forward_ / static_cast<double>(cycles_); }
  [[nodiscard]] double mean_window() const { return window_ / static_cast<double>(cycles_); }
  /// Returns how often each rule acted, for adaptive engines.
  [[nodiscard]] std::string rules() const {
    std::string text;
    for (const auto& [rule, times] : rules_) {
      if (rule != static_cast<std::size_t>(restore::AlaccRule::kNone)) {
        text += fmt::format(" {} {}", kRules[rule], times);
      }
    }
    return text.empty() ? text : " | rules" + text;
  }

 private:
  static constexpr const char* kRules[] = {"forward+", "cache+",  "cache-",
                                           "window+",  "window-", "-"};
  const bool print_;
  std::size_t cycles_ = 0;
  std::size_t containers_ = 0;
  double forward_ = 0;
  double window_ = 0;
  std::map<std::size_t, std::size_t> rules_;
};

struct Outcome {
  std::size_t containers = 0;  // Number of containers read.
  double speed_factor = 0;     // MiB per container.
  double per_container = 0;    // MiB per 4 MiB read.
  double requests = 0;         // Per 100 MiB.
  double seconds = 0;          // Computing time per GiB.
  double mean_forward = 0;
  double mean_window = 0;
  std::string rules;
  std::size_t peak_bytes = 0;
  std::uint64_t hash = 0;
};

using MakeEngine = std::function<std::unique_ptr<restore::RestoreEngine>(
    const restore::EngineContext& context, const restore::EngineMemory& memory)>;

/// The engine to measure.
struct Candidate {
  std::string name;
  MakeEngine make;
  /// The run ends early when it has read more containers.
  std::size_t containers_max = std::numeric_limits<std::size_t>::max();
};

Candidate engine_called(const std::string& name) {
  return {name, [name](const auto& context, const auto& memory) {
            return must(restore::make_engine(name, context, memory));
          }};
}

/// Returns the published engine with fixed sizes.
Candidate engine_of(const restore::AlaccSizes& sizes) {
  restore::EngineKind kind;
  kind.keep = restore::EngineKind::Keep::kFutureAndPast;
  kind.forward = restore::EngineKind::Forward::kFixed;
  kind.sizes = sizes;
  return {"alacc-fixed", [kind](const auto& context, const auto& memory) {
            return std::make_unique<restore::WindowEngine>(kind, context, memory);
          }};
}

Outcome run(const Trace& trace, const Trace::Version& version, const Candidate& candidate,
            std::size_t memory, bool whole_containers, bool print_log) {
  const std::string& name = candidate.name;
  CountingSource source(*trace.source);
  bench::RunList stream(version.runs);
  bench::EngineParts parts(whole_containers);
  CycleLog log(print_log);
  const auto context = parts.context(source, stream, &log);
  Outcome outcome;
  const double begin = bench::thread_cpu_seconds();
  double hashing = 0;
  {
    const auto engine = candidate.make(context, parts.memory_for(name, memory));
    while (const auto area = must(engine->assemble(bench::kEngineAreaBytes))) {
      if (log.containers() > candidate.containers_max) break;
      const double hash_begin = bench::thread_cpu_seconds();
      const std::uint64_t at = area->position();
      if (area->good_bytes(at) != area->end() - at) {
        fmt::print(stderr, "bench: {} did not restore everything\n", name);
        std::exit(1);
      }
      outcome.hash = outcome.hash * 31 + base::checksum64({area->bytes_at(at), area->end() - at});
      hashing += bench::thread_cpu_seconds() - hash_begin;
    }
  }
  const double seconds = bench::thread_cpu_seconds() - begin - hashing - source.seconds();
  const double restored = static_cast<double>(version.bytes);
  outcome.containers = log.containers();
  outcome.speed_factor = restored / kMiB / static_cast<double>(log.containers());
  outcome.per_container = 4 * restored / static_cast<double>(parts.metrics().read_bytes.value());
  outcome.requests = static_cast<double>(parts.metrics().requests.value()) * 100 * kMiB / restored;
  outcome.seconds = seconds * 1024 * kMiB / restored;
  outcome.mean_forward = log.mean_forward();
  outcome.mean_window = log.mean_window();
  outcome.rules = log.rules();
  outcome.peak_bytes = parts.peak_bytes();
  return outcome;
}

/// Returns the MiB per container if each container were read once.
double best_possible(const Trace& trace, const Trace::Version& version) {
  std::set<ContainerNumber> containers;
  for (const restore::StreamRun& run : version.runs) {
    for (std::uint32_t i = 0; i < run.count;) {
      const auto located = must(trace.source->locate(run.first.plus(i)));
      containers.insert(located.container);
      const auto skip = static_cast<std::uint32_t>(run.first.plus(i).value - located.first.value);
      i += located.count - skip;
    }
  }
  return static_cast<double>(version.bytes) / kMiB / static_cast<double>(containers.size());
}

void print(const std::string& engine, const Outcome& whole, const Outcome& extents) {
  fmt::print(
      "  {:<12} speed factor {:>5.2f} | extents {:>5.2f}, {:>5.0f} requests | {:>5.2f} s/GiB | "
      "forward {:>4.1f}, window {:>5.1f} | peak {:>3.0f} MiB{}\n",
      engine, whole.speed_factor, extents.per_container, extents.requests, whole.seconds,
      whole.mean_forward, whole.mean_window, static_cast<double>(whole.peak_bytes) / kMiB,
      whole.rules);
  std::fflush(stdout);
}

/// Finds the fixed sizes that read the fewest containers, by trying all of them.
Outcome run_best_fixed(const Trace& trace, const Trace::Version& version, std::size_t memory,
                       std::size_t window_step, restore::AlaccSizes& best_sizes) {
  const std::size_t units = memory / bench::kEngineAreaBytes;
  Outcome best;
  best.containers = std::numeric_limits<std::size_t>::max();
  for (std::size_t forward = 1; forward < std::max<std::size_t>(units, 2); ++forward) {
    for (std::size_t window = units; window <= 6 * units; window += window_step) {
      Candidate candidate = engine_of({forward, window});
      candidate.containers_max = best.containers;
      const Outcome outcome = run(trace, version, candidate, memory, true, false);
      if (outcome.containers >= best.containers) continue;
      best = outcome;
      best_sizes = {forward, window};
    }
  }
  return best;
}

struct Settings {
  std::size_t memory = 64U << 20;
  std::size_t fix_step = 16;
  std::string log;
};

/// The figures of each engine, one for each version: restored MiB per container, with whole
/// containers, and per 4 MiB read, with planned requests.
struct Figures {
  std::map<std::string, std::vector<double>> whole;
  std::map<std::string, std::vector<double>> extents;

  void add(const std::string& engine, const Outcome& whole_run, const Outcome& extents_run) {
    whole[engine].push_back(whole_run.speed_factor);
    extents[engine].push_back(extents_run.per_container);
  }
};

void measure(const Trace& trace, const Settings& settings, Figures& figures) {
  const std::size_t memory = settings.memory;
  for (const Trace::Version& version : trace.versions) {
    fmt::print("{}, {}: {:.0f} MiB, {} runs; at most {:.2f} MiB a container\n", trace.name,
               version.name, static_cast<double>(version.bytes) / kMiB, version.runs.size(),
               best_possible(trace, version));
    std::uint64_t hash = 0;
    for (const std::string& engine : engine_names()) {
      const Candidate candidate = engine_called(engine);
      const Outcome whole = run(trace, version, candidate, memory, true, engine == settings.log);
      const Outcome extents = run(trace, version, candidate, memory, false, false);
      if (hash == 0) hash = whole.hash;
      if (whole.hash != hash || extents.hash != hash) {
        fmt::print(stderr, "bench: {} restored other bytes\n", engine);
        std::exit(1);
      }
      figures.add(engine, whole, extents);
      print(engine, whole, extents);
    }
    if (settings.fix_step == 0) continue;
    restore::AlaccSizes sizes;
    const Outcome whole = run_best_fixed(trace, version, memory, settings.fix_step, sizes);
    const Outcome extents = run(trace, version, engine_of(sizes), memory, false, false);
    if (whole.hash != hash || extents.hash != hash) {
      fmt::print(stderr, "bench: fixed sizes restored other bytes\n");
      std::exit(1);
    }
    figures.add(kFixOpt, whole, extents);
    print(kFixOpt, whole, extents);
  }
}

void compare_engines(const std::map<std::string, std::vector<double>>& figures,
                     const std::string& unit,
                     const std::vector<std::array<std::string, 3>>& pairs) {
  for (const auto& [engine, other, note] : pairs) {
    if (!figures.contains(other)) continue;
    double sum = 0;
    double log_sum = 0;
    double worst = 1e9;
    double total = 0;
    double other_total = 0;
    const auto& a = figures.at(engine);
    const auto& b = figures.at(other);
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum += a[i] / b[i];
      total += a[i];
      other_total += b[i];
      log_sum += std::log(a[i] / b[i]);
      worst = std::min(worst, a[i] / b[i]);
    }
    const auto n = static_cast<double>(a.size());
    fmt::print(
        "{}: {:<12} over {:<12} mean of ratios {:+.0f} %, geometric {:+.0f} %, ratio of means "
        "{:+.0f} %; worst {:+.2f} %{}\n",
        unit, engine, other, 100 * (sum / n - 1), 100 * (std::exp(log_sum / n) - 1),
        100 * (total / other_total - 1), 100 * (worst - 1), note);
  }
}

void summarise(const Figures& figures) {
  std::vector<std::array<std::string, 3>> pairs;
  for (const std::string& other : engine_names()) {
    if (other != "alacc") pairs.push_back({"alacc", other, ""});
  }
  pairs.push_back({"alacc", kFixOpt, ""});
  compare_engines(figures.extents, "requests", pairs);
  pairs.insert(pairs.begin(), {{"alacc-paper", "lru", " (published: +83 %)"},
                               {"alacc-paper", "lru-chunk", " (published: +12 %)"},
                               {"alacc-paper", "faa", " (published: +37 %)"},
                               {"alacc-paper", kFixOpt, " (published: +2 %)"}});
  compare_engines(figures.whole, "containers", pairs);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: bench-restore-engines DIRECTORY [--versions N] [--chunks N] "
               "[--memory MIB] [--log ENGINE] [--fix-step N]\n");
    return 2;
  }
  const std::string directory = std::string(argv[1]) + "/bench-restore-engines";
  std::size_t versions = 20;
  std::size_t chunks = 60000;
  Settings settings;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--versions") versions = std::strtoul(argv[i + 1], nullptr, 10);
    if (name == "--chunks") chunks = std::strtoul(argv[i + 1], nullptr, 10);
    if (name == "--memory") settings.memory = std::strtoul(argv[i + 1], nullptr, 10) << 20;
    if (name == "--log") settings.log = argv[i + 1];
    if (name == "--fix-step") settings.fix_step = std::strtoul(argv[i + 1], nullptr, 10);
  }
  fmt::print("{} versions of about {} chunks, {} MiB for assembly and cache\n", versions, chunks,
             settings.memory >> 20);
  bench::SourceOptions clustered;
  clustered.chunks = chunks;
  clustered.hot_files_spread = true;
  bench::SourceOptions copies = clustered;
  copies.self_duplicates = 0.15;
  bench::SourceOptions scattered = clustered;
  scattered.change = 0.005;
  scattered.clustered = false;
  scattered.self_duplicates = 0.05;

  Figures figures;
  measure(bench::classic_trace("containers, 2 % clustered", clustered, versions), settings,
          figures);
  measure(bench::classic_trace("the same with 15 % copies", copies, versions), settings, figures);
  measure(bench::classic_trace("containers, 0.5 % scattered", scattered, versions), settings,
          figures);
  measure(bench::series_trace("tiered layout", directory, clustered, ArrangePolicyKind::kTiered,
                              versions),
          settings, figures);
  measure(bench::series_trace("birth-ordered layout", directory, clustered,
                              ArrangePolicyKind::kOriginal, versions),
          settings, figures);
  summarise(figures);
  return 0;
}
