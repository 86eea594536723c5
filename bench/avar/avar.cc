// SPDX-License-Identifier: Apache-2.0
// Measures the cost of the arranging policies: stores a series of generated versions in the real
// layout, and counts written, read and dead bytes, and the reads of a restore.
//
//   bench-avar DIRECTORY [--versions N] [--chunks N] [--change PERCENT] [--back PERCENT]
//              [--scattered] [--window W] [--fan F] [--dead PERCENT] [--tiered-only]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "avar/stored_series.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)

struct Run {
  std::string directory;
  bench::SourceOptions source;
  ArrangeSettings settings;
  std::size_t versions = 100;
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

void print_reads(const char* which, const bench::Reads& reads) {
  fmt::print("  {:<8} RA {:.3f} in {} extents; engine {:.3f} in {} requests\n", which,
             reads.amplification, reads.extents, reads.in_order, reads.requests);
}

void measure(const char* name, const Run& run) {
  bench::StoredSeries series(run.directory, run.settings);
  bench::VersionSource source(run.source);
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::uint64_t backups = 0;
  std::uint64_t first = 0;
  double dead = 0;
  // Sum of the amplifications for the newest version, after each version of the second half.
  double read_sum = 0;
  double read_max = 0;
  for (std::size_t i = 0; i < run.versions; ++i) {
    series.store(source.stream(), source);
    if (i == 0) first = series.new_bytes();
    if (i != 0) backups += series.backup_bytes();
    const auto moved = series.arrange();
    written += moved.bytes_written;
    read += moved.bytes_read;
    dead = std::max(dead, series.dead_share());
    if (i >= run.versions / 2) {
      const double amplification = series.amplification_of(i);
      read_sum += amplification;
      read_max = std::max(read_max, amplification);
    }
    if (i + 1 < run.versions) source.next_version();
  }
  fmt::print("{}, window {}, dead share {:.1f} %, fan {}\n", name, run.settings.window,
             run.settings.dead_permille / 10.0, run.settings.fan);
  fmt::print(
      "  a version: writes {:.3f}, reads {:.3f} of a backup; {:.2f} bytes written a new one\n",
      ratio(written, backups), ratio(read, backups), ratio(written, series.new_bytes() - first));
  const auto space = series.space();
  const auto exact = source.distinct_bytes();
  fmt::print(
      "  files {:.4f} of exact deduplication: {:.4f} + stored again {:.2f} % + dead {:.2f} % + "
      "headers and padding {:.2f} %\n",
      ratio(space.files, exact), 1.0, 100 * (ratio(space.live, exact) - 1),
      100 * ratio(space.dead, exact), 100 * ratio(space.headers, exact));
  fmt::print("  dead and departing at most {:.1f} % of the active set\n", 100 * dead);
  fmt::print("  newest   RA {:.3f} on average and at most {:.3f}, in the series' second half\n",
             read_sum / static_cast<double>(run.versions - run.versions / 2), read_max);
  print_reads("newest", series.reads_of(run.versions - 1));
  print_reads("middle", series.reads_of(run.versions / 2));
  print_reads("oldest", series.reads_of(0));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: bench-avar DIRECTORY [--versions N] [--chunks N] [--change PERCENT] "
               "[--back PERCENT] [--window W] [--fan F] [--dead PERCENT] [--scattered] "
               "[--tiered-only]\n");
    return 2;
  }
  Run run;
  bool tiered_only = false;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--scattered") {
      run.source.clustered = false;
      continue;
    }
    if (name == "--tiered-only") {
      tiered_only = true;
      continue;
    }
    const double value = i + 1 < argc ? std::atof(argv[++i]) : 0;
    if (name == "--versions") run.versions = static_cast<std::size_t>(value);
    if (name == "--chunks") run.source.chunks = static_cast<std::size_t>(value);
    if (name == "--change") run.source.change = value / 100;
    if (name == "--back") run.source.return_share = value / 100;
    if (name == "--window") run.settings.window = static_cast<std::uint32_t>(value);
    if (name == "--dead") {
      run.settings.dead_permille = static_cast<std::uint32_t>(std::lround(value * 10));
    }
    if (name == "--fan") run.settings.fan = static_cast<std::uint32_t>(value);
  }
  fmt::print(
      "{} versions of about {} chunks, {:.1f} % change; {:.1f} % are content that was gone for "
      "one, "
      "two or three versions; {}\n"
      "RA: bytes read / needed in any order, with gaps under 1 MiB; engine: bytes read / restored, "
      "in order, 64 MiB\n",
      run.versions, run.source.chunks, 100 * run.source.change, 100 * run.source.return_share,
      run.source.clustered ? "clustered" : "scattered");
  run.directory = std::string(argv[1]) + "/bench-avar";
  measure("tiered", run);
  if (tiered_only) return 0;
  run.settings.policy = ArrangePolicyKind::kBatched;
  measure("batched(10)", run);
  run.settings.policy = ArrangePolicyKind::kOriginal;
  measure("original", run);
  return 0;
}
