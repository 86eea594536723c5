// SPDX-License-Identifier: Apache-2.0
// What the arranging policies cost: a series of generated versions goes through the real layout,
// and what was written, read and left dead is measured, with the reads that a restore would make.
//
//   bench-avar DIRECTORY [--versions N] [--chunks N] [--change PERCENT] [--scattered] [--window W]
//              [--fan F] [--tiered-only]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "avar/series.h"
#include "avar/version_source.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)
using bench::Series;

void measure(const char* name, const std::string& directory, const ArrangeSettings& settings,
             const bench::SourceOptions& options, std::size_t versions) {
  Series series(directory, settings);
  bench::VersionSource source(options);
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::uint64_t backups = 0;
  std::uint64_t first = 0;
  double dead = 0;
  for (std::size_t i = 0; i < versions; ++i) {
    series.store(source.stream(), source);
    if (i == 0) first = series.new_bytes();
    if (i != 0) backups += series.backup_bytes();
    const auto moved = series.arrange();
    written += moved.bytes_written;
    read += moved.bytes_read;
    dead = std::max(dead, series.dead_share());
    if (i + 1 < versions) source.next_version();
  }
  const auto newest = series.reads_of(versions - 1);
  const auto oldest = series.reads_of(0);
  const double all = static_cast<double>(backups);
  fmt::print(
      "{:<12} {:>6.3f} {:>6.3f} {:>6.2f} {:>6.1f}% | {:>5.3f} {:>5} {:>6.2f} | {:>5.3f} {:>5} "
      "{:>6.2f} | {:>6.3f}\n",
      name, static_cast<double>(written) / all, static_cast<double>(read) / all,
      static_cast<double>(written) / static_cast<double>(series.new_bytes() - first), 100 * dead,
      newest.amplification, newest.extents, newest.in_order, oldest.amplification, oldest.extents,
      oldest.in_order,
      static_cast<double>(series.stored_bytes()) / static_cast<double>(source.distinct_bytes()));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: bench-avar DIRECTORY [--versions N] [--chunks N] [--change PERCENT] "
               "[--window W] [--fan F] [--scattered] [--tiered-only]\n");
    return 2;
  }
  bench::SourceOptions options;
  std::size_t versions = 100;
  ArrangeSettings settings;
  bool tiered_only = false;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--scattered") {
      options.clustered = false;
      continue;
    }
    if (name == "--tiered-only") {
      tiered_only = true;
      continue;
    }
    const double value = i + 1 < argc ? std::atof(argv[++i]) : 0;
    if (name == "--versions") versions = static_cast<std::size_t>(value);
    if (name == "--chunks") options.chunks = static_cast<std::size_t>(value);
    if (name == "--change") options.change = value / 100;
    if (name == "--window") settings.window = static_cast<std::uint32_t>(value);
    if (name == "--fan") settings.fan = static_cast<std::uint32_t>(value);
  }
  fmt::print(
      "{} versions of about {} chunks, {:.1f} % change, {}, window {}\n"
      "W, R: bytes that arranging writes and reads a version / backup; W/new: written / new raw "
      "byte;\nRA: read / needed with gaps under 1 MiB; ext: reads; io: in order, 64 MiB cache; "
      "last: files / distinct bytes\n"
      "{:<12} {:>6} {:>6} {:>6} {:>7} | newest RA ext io      | oldest RA ext io\n",
      versions, options.chunks, 100 * options.change, options.clustered ? "clustered" : "scattered",
      settings.window, "policy", "W", "R", "W/new", "dead");
  const std::string directory = std::string(argv[1]) + "/bench-avar";
  measure("tiered", directory, settings, options, versions);
  if (tiered_only) return 0;
  settings.policy = ArrangePolicyKind::kBatched;
  measure("batched(10)", directory, settings, options, versions);
  settings.policy = ArrangePolicyKind::kOriginal;
  measure("original", directory, settings, options, versions);
  return 0;
}
