// SPDX-License-Identifier: Apache-2.0
// The newest version reads best: after every version of a history, with few bytes more than its
// different chunks have and with few requests, and arranging writes a bounded part of a backup for
// that.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "avar/series_kinds.h"
#include "avar/stored_series.h"

namespace varve {
namespace {

constexpr std::size_t kChunks = 4000;  // About 32 MiB.
constexpr std::size_t kVersions = 18;
constexpr double kHundredMiB = 100 << 20;

struct Limits {
  double newest_share = 0.95;    // Different bytes / bytes read, headers included.
  double written_of_backup = 0;  // Mean of all versions.
  double requests = 0;           // For 100 MiB; mean of all versions.
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

void check_kind(bench::KindSource::Kind kind, const Limits& limits) {
  const std::string directory = testing::TempDir() + "varve-newest-" + std::to_string(::getpid());
  bench::StoredSeries series(directory, ArrangeSettings{});
  bench::KindSource source(kind, kChunks, 42);
  std::uint64_t written = 0;
  std::uint64_t backups = 0;
  std::uint64_t requests = 0;
  std::uint64_t restored = 0;
  for (std::size_t i = 0; i < kVersions; ++i) {
    if (i != 0) source.next_version();
    series.store(source.stream(), source);
    written += series.arrange().bytes_written;
    if (i != 0) backups += series.backup_bytes();
    const auto reads = series.reads_of(i);
    requests += reads.requests;
    restored += reads.logical_bytes;
    EXPECT_GE(ratio(reads.unique_bytes, reads.read_bytes), limits.newest_share)
        << "version " << i + 1;
  }
  EXPECT_LE(ratio(written, backups), limits.written_of_backup);
  EXPECT_LE(ratio(requests, restored) * kHundredMiB, limits.requests);
}

TEST(NewestGate, ReleasesOfAPackage) {
  check_kind(bench::KindSource::Kind::kReleases, {0.95, 0.26, 93});
}

TEST(NewestGate, ManyPackages) {
  check_kind(bench::KindSource::Kind::kPackages, {0.95, 0.109, 100});
}

TEST(NewestGate, ImagesOfADisk) {
  check_kind(bench::KindSource::Kind::kImages, {0.95, 0.135, 134});
}

TEST(NewestGate, FoldersOfMail) { check_kind(bench::KindSource::Kind::kMail, {0.95, 0.091, 96}); }

TEST(NewestGate, DatabaseWithScatteredPages) {
  check_kind(bench::KindSource::Kind::kDatabase, {0.95, 0.173, 103});
}

TEST(NewestGate, RandomPages) {
  check_kind(bench::KindSource::Kind::kScattered, {0.95, 0.231, 115});
}

// Each version shares less than half with its predecessor.
TEST(NewestGate, BuildsThatChangeMoreThanHalf) {
  check_kind(bench::KindSource::Kind::kBuilds, {0.95, 2, 200});
}

TEST(NewestGate, DumpOfWhichAThirdStays) {
  check_kind(bench::KindSource::Kind::kDump, {0.95, 2, 200});
}

TEST(NewestGate, FoldersOfUsers) { check_kind(bench::KindSource::Kind::kHome, {0.95, 0.063, 103}); }

}  // namespace
}  // namespace varve
