// SPDX-License-Identifier: Apache-2.0
// Measures how the newest version reads after each version of a series, for series of several
// kinds, beside the older versions and the bytes that arranging writes.
//
//   bench-newest DIRECTORY [--kind NAME] [--versions N] [--chunks N] [--seed N]
//                [--window W] [--fan F] [--dead PERCENT] [--each]
//                [--sparse] [--measured N] [--memory MIB]
//
// With --sparse the chunks are zeros, and zeros take no space on the disk: a series of 100 GiB
// needs some GiB of memory, and no disk. With --measured only the last N versions are read, each
// when it is the newest one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "avar/series_kinds.h"
#include "avar/sparse_file_system.h"
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
  bool sparse = false;
  std::size_t measured = SIZE_MAX;
  std::size_t memory = 64U << 20;
};

/// The sizes of another source's kind of contents, without their bytes.
class Zeros final : public bench::ContentSource {
 public:
  [[nodiscard]] std::size_t bytes_of(bench::Content content) const override {
    // The distribution of ContentSource, of one hash in place of a generator: there are many
    // millions of calls.
    std::uint64_t hash = (content + 1) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
    hash ^= hash >> 31;
    const double unit = (static_cast<double>(hash >> 11) + 1) * 0x1p-53;
    return std::min<std::size_t>(65536, 2048 + static_cast<std::size_t>(-6144 * std::log(unit)));
  }
  [[nodiscard]] std::span<const std::byte> data_of(bench::Content content) const override {
    return std::span(zeros_).first(bytes_of(content));
  }

 private:
  const std::array<std::byte, 65536> zeros_{};
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

// Returns how many of `count` events there are for 100 MiB of a version.
double for_100_mib(std::uint64_t count, const bench::Reads& reads) {
  return static_cast<double>(count) * (100 << 20) / static_cast<double>(reads.logical_bytes);
}

double requests_of(const bench::Reads& reads) { return for_100_mib(reads.requests, reads); }

void measure(const bench::KindName& kind, const Run& run) {
  auto sparse = run.sparse ? std::make_unique<bench::SparseFileSystem>() : nullptr;
  const bench::SparseFileSystem* const heads = sparse.get();
  bench::StoredSeries series(
      run.directory, run.settings,
      sparse ? std::unique_ptr<io::FileSystem>(std::move(sparse)) : io::make_posix_file_system());
  series.read_with(run.memory);
  bench::KindSource source(kind.kind, run.chunks, run.seed);
  const Zeros zeros;
  std::uint64_t written = 0;
  std::uint64_t backups = 0;
  std::uint64_t first = 0;
  double worst = 1;
  double sum = 0;
  double requests = 0;
  std::size_t measured = 0;
  for (std::size_t i = 0; i < run.versions; ++i) {
    series.store(source.stream(), heads ? static_cast<const bench::ContentSource&>(zeros) : source);
    if (i == 0) first = series.new_bytes();
    if (i != 0) backups += series.backup_bytes();
    const auto moved = series.arrange();
    written += moved.bytes_written;
    if (i + 1 < run.versions) source.next_version();
    if (run.versions - i > run.measured) continue;
    const auto jumps_before = heads ? heads->jumps() : 0;
    const auto reads = heads ? series.reads_in_order_of(i) : series.reads_of(i);
    if (heads) {
      fmt::print("  {:>3}: {:.1f} jumps for 100 MiB\n", i + 1,
                 for_100_mib(heads->jumps() - jumps_before, reads));
    }
    ++measured;
    const double share = ratio(reads.unique_bytes, reads.read_bytes);
    worst = std::min(worst, share);
    sum += share;
    requests = std::max(requests, requests_of(reads));
    if (run.each) {
      fmt::print("  {:>3}: newest {:.3f} of best, {:.0f} requests, RA {:.3f}; wrote {:.3f}\n",
                 i + 1, share, requests_of(reads), reads.amplification,
                 ratio(moved.bytes_written, series.backup_bytes()));
    }
  }
  fmt::print("{:<9} newest: {:.3f} of best at least, {:.3f} on average, {:.0f} requests at most",
             kind.name, worst, sum / static_cast<double>(measured), requests);
  double worst_older = 1;
  double sum_older = 0;
  std::size_t older = 0;
  for (std::size_t i = 0; i + 1 < run.versions; ++i) {
    if (run.versions - i > run.measured) continue;
    const auto reads = series.reads_in_order_of(i);
    ++older;
    const double share = ratio(reads.unique_bytes, reads.read_bytes);
    worst_older = std::min(worst_older, share);
    sum_older += share;
    if (run.each) fmt::print("  {:>3}: at the end {:.3f} of best\n", i + 1, share);
  }
  fmt::print(
      "; older: {:.3f} at least, {:.3f} on average; writes {:.3f} of a backup, {:.2f} bytes a new "
      "one; "
      "dead {:.1f} %\n",
      worst_older, sum_older / static_cast<double>(std::max<std::size_t>(older, 1)),
      ratio(written, backups), ratio(written, series.new_bytes() - first),
      100 * series.dead_share());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: bench-newest DIRECTORY [--kind NAME] [--versions N] [--chunks N] "
               "[--seed N] [--window W] [--fan F] [--dead PERCENT] [--each] [--sparse] "
               "[--measured N] [--memory MIB]\n");
    return 2;
  }
  Run run;
  std::string wanted;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--each" || name == "--sparse") {
      (name == "--each" ? run.each : run.sparse) = true;
      continue;
    }
    const std::string text = i + 1 < argc ? argv[++i] : "";
    const double value = std::atof(text.c_str());
    if (name == "--kind") wanted = text;
    if (name == "--memory") run.memory = static_cast<std::size_t>(value) << 20;
    if (name == "--measured") run.measured = static_cast<std::size_t>(value);
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
