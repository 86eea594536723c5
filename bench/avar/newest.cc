// SPDX-License-Identifier: Apache-2.0
// Measures how the newest version reads after each version of a series, for series of several
// kinds, beside the older versions and the bytes that arranging writes.
//
//   bench-newest DIRECTORY [--kind NAME] [--versions N] [--chunks N] [--seed N]
//                [--window W] [--fan F] [--dead PERCENT] [--each]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "avar/series_kinds.h"
#include "avar/stored_series.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)

struct Run {
  std::string directory;
  ArrangeSettings settings;
  std::size_t versions = 20;
  std::size_t chunks = 8000;
  std::uint64_t seed = 1;
  bool each = false;
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

// Returns the requests for 100 MiB of a version.
double requests_of(const bench::Reads& reads) {
  return static_cast<double>(reads.requests) * (100 << 20) /
         static_cast<double>(reads.logical_bytes);
}

void measure(const bench::KindName& kind, const Run& run) {
  bench::StoredSeries series(run.directory, run.settings);
  bench::KindSource source(kind.kind, run.chunks, run.seed);
  std::uint64_t written = 0;
  std::uint64_t backups = 0;
  std::uint64_t first = 0;
  double worst = 1;
  double sum = 0;
  double requests = 0;
  for (std::size_t i = 0; i < run.versions; ++i) {
    series.store(source.stream(), source);
    if (i == 0) first = series.new_bytes();
    if (i != 0) backups += series.backup_bytes();
    const auto moved = series.arrange();
    written += moved.bytes_written;
    const auto reads = series.reads_of(i);
    const double share = ratio(reads.unique_bytes, reads.read_bytes);
    worst = std::min(worst, share);
    sum += share;
    requests = std::max(requests, requests_of(reads));
    if (run.each) {
      fmt::print("  {:>3}: newest {:.3f} of best, {:.0f} requests, RA {:.3f}; wrote {:.3f}\n",
                 i + 1, share, requests_of(reads), reads.amplification,
                 ratio(moved.bytes_written, series.backup_bytes()));
    }
    if (i + 1 < run.versions) source.next_version();
  }
  fmt::print("{:<9} newest: {:.3f} of best at least, {:.3f} on average, {:.0f} requests at most",
             kind.name, worst, sum / static_cast<double>(run.versions), requests);
  double worst_older = 1;
  double sum_older = 0;
  for (std::size_t i = 0; i + 1 < run.versions; ++i) {
    const auto reads = series.reads_of(i);
    const double share = ratio(reads.unique_bytes, reads.read_bytes);
    worst_older = std::min(worst_older, share);
    sum_older += share;
    if (run.each) fmt::print("  {:>3}: at the end {:.3f} of best\n", i + 1, share);
  }
  fmt::print(
      "; older: {:.3f} at least, {:.3f} on average; writes {:.3f} of a backup, {:.2f} bytes a new "
      "one; "
      "dead {:.1f} %\n",
      worst_older, sum_older / static_cast<double>(std::max<std::size_t>(run.versions - 1, 1)),
      ratio(written, backups), ratio(written, series.new_bytes() - first),
      100 * series.dead_share());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: bench-newest DIRECTORY [--kind NAME] [--versions N] [--chunks N] "
               "[--seed N] [--window W] [--fan F] [--dead PERCENT] [--each]\n");
    return 2;
  }
  Run run;
  std::string wanted;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--each") {
      run.each = true;
      continue;
    }
    const std::string text = i + 1 < argc ? argv[++i] : "";
    const double value = std::atof(text.c_str());
    if (name == "--kind") wanted = text;
    if (name == "--versions") run.versions = static_cast<std::size_t>(value);
    if (name == "--chunks") run.chunks = static_cast<std::size_t>(value);
    if (name == "--seed") run.seed = static_cast<std::uint64_t>(value);
    if (name == "--window") run.settings.window = static_cast<std::uint32_t>(value);
    if (name == "--fan") run.settings.fan = static_cast<std::uint32_t>(value);
    if (name == "--dead") {
      run.settings.dead_permille = static_cast<std::uint32_t>(std::lround(value * 10));
    }
  }
  run.directory = std::string(argv[1]) + "/bench-newest";
  for (const auto& kind : bench::kKinds) {
    if (wanted.empty() || wanted == kind.name) measure(kind, run);
  }
  return 0;
}
