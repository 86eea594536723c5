// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that the pool stores, deletes and merges: they follow the change.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/pool_oracle.h"
#include "support/prefer_memory.h"
#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr int kHosts = 3;
constexpr int kFiles = 200;
constexpr std::size_t kFileBytes = 100'000;

/// Hosts that share four fifths of their files; each version of a host changes some of them.
class PoolGate : public testing::TestWithParam<Placement> {
 protected:
  PoolGate() {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    for (int host = 0; host < kHosts; ++host) {
      SeriesOptions options;
      options.placement = GetParam();
      auto& one = hosts_.emplace_back();
      one.id = must(repository_->create_series("host" + std::to_string(host), options)).id;
      for (int file = 0; file < kFiles; ++file) {
        one.seed_of[file] = file < kFiles * 4 / 5 ? static_cast<std::uint64_t>(file) : ++seed_;
      }
    }
  }

  struct Host {
    SeriesId id{};
    std::map<int, std::uint64_t> seed_of;
    std::map<VersionNumber, std::map<int, std::uint64_t>> sealed;
  };

  void store(Host& host, int changes) {
    for (int i = 0; i < changes; ++i) host.seed_of[static_cast<int>(random_() % kFiles)] = ++seed_;
    const auto number =
        must(repository_->open_version(host.id, "v" + std::to_string(++versions_), test::folder()))
            .number;
    {
      const auto writer = must(repository_->writer(host.id));
      for (const auto& [file, seed] : host.seed_of) {
        test::write_file(*writer, kRootIno, "f" + std::to_string(file),
                         test::noise(kFileBytes, seed));
      }
    }
    must(repository_->seal(host.id, number, ""));
    host.sealed[number] = host.seed_of;
  }

  void expect_whole() {
    for (const auto& host : hosts_) {
      for (const auto& [number, files] : host.sealed) {
        const auto reader = must(repository_->reader(host.id, number));
        for (const auto& [file, seed] : files) {
          ASSERT_TRUE(test::read_sealed(*reader, "f" + std::to_string(file)) ==
                      test::noise(kFileBytes, seed));
        }
      }
    }
  }
  std::uint64_t pool_bytes() const { return test::bytes_below(path_ + "/pool/active"); }
  std::uint64_t series_bytes() const {
    std::uint64_t sum = 0;
    for (int host = 1; host <= kHosts; ++host) {
      sum += test::bytes_below(path_ + "/series/0000000" + std::to_string(host) + "/active");
    }
    return sum;
  }

  const test::PreferMemory in_memory_;
  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::mt19937_64 random_{1};
  std::unique_ptr<Repository> repository_;
  std::vector<Host> hosts_;
  std::uint64_t seed_ = 1000;
  int versions_ = 0;
};

TEST_P(PoolGate, HostsThatShareFilesStoreThemOnce) {
  constexpr std::uint64_t kUnique =
      (kFiles + (kHosts - 1) * kFiles / 5) * std::uint64_t{kFileBytes};
  for (auto& host : hosts_) store(host, 0);
  const auto stored = pool_bytes() + series_bytes();
  // The second host promotes what the first one has, which stays where it is until it departs.
  const bool promotes = GetParam() == Placement::kLineagePool;
  const auto shared = kFiles * 4 / 5 * std::uint64_t{kFileBytes};
  RecordProperty("stored", static_cast<int>(stored));
  EXPECT_LE(stored, (kUnique + (promotes ? shared : 0)) * 104 / 100);
  // A version with 4 % of changes.
  const auto before = pool_bytes() + series_bytes();
  store(hosts_[0], kFiles / 25);
  const auto added = pool_bytes() + series_bytes() - before;
  const auto again = promotes ? shared : 0;  // The first host now refers to the promoted copy.
  EXPECT_LE(added, kFiles / 25 * std::uint64_t{kFileBytes} * 12 / 10 + again / 50);
  expect_whole();
}

TEST_P(PoolGate, DeletionCopiesNothingAndMergingLessThanItFrees) {
  for (int i = 0; i < 8; ++i) store(hosts_[0], kFiles / 4);
  store(hosts_[1], kFiles / 4);
  auto& host = hosts_[0];
  std::vector<VersionNumber> gone;
  for (const auto& [number, files] : host.sealed) gone.push_back(number);
  gone.pop_back();
  const auto placed = test::metric(*repository_, "varve_layout_container_bytes_total");
  const auto before = pool_bytes();
  must(repository_->delete_versions(host.id, gone, {}));
  for (const auto number : gone) host.sealed.erase(number);
  EXPECT_LE(pool_bytes(), before);
  EXPECT_EQ(test::metric(*repository_, "varve_layout_container_bytes_total"), placed);
  const auto deleted = pool_bytes();
  const auto series = series_bytes();
  const auto report = must(repository_->arrange(hosts_[2].id, {}));  // Has nothing of its own.
  EXPECT_TRUE(report.finished);
  const auto merged = pool_bytes();
  RecordProperty("written", static_cast<int>(report.done.bytes_written));
  RecordProperty("freed", static_cast<int>(deleted - merged));
  EXPECT_EQ(series_bytes(), series);
  EXPECT_LE(merged, deleted);
  EXPECT_LE(report.done.bytes_written, (deleted - merged) / 2);
  if (GetParam() == Placement::kPool) {
    EXPECT_GT(deleted - merged, 0U);
  }
  // The next search has nothing to do.
  const auto again = must(repository_->arrange(hosts_[2].id, {}));
  EXPECT_EQ(again.done.bytes_written + again.done.bytes_read, 0U);
  expect_whole();
}

/// Two repositories of the same hosts: one with a placement, and one that stores each chunk once.
class PieceGate : public testing::Test {
 protected:
  struct Side {
    explicit Side(Placement its_placement) : placement(its_placement) {
      must(Repository::create(path, test::small_chunks(Codec::kNone)));
      repository = test::reopen(path);
    }
    void store(int host, int version, const std::map<std::string, std::string>& files) {
      const auto name = "host" + std::to_string(host);
      SeriesOptions options;
      options.placement = placement;
      if (version == 1) ids.push_back(must(repository->create_series(name, options)).id);
      const auto id = ids.at(static_cast<std::size_t>(host));
      const auto number =
          must(repository->open_version(id, "v" + std::to_string(version), test::folder())).number;
      {
        const auto writer = must(repository->writer(id));
        for (const auto& [file, bytes] : files) {
          test::write_file(*writer, kRootIno, file, bytes);
        }
      }
      must(repository->seal(id, number, ""));
      const auto reader = must(repository->reader(id, number));
      for (const auto& [file, bytes] : files) {
        ASSERT_TRUE(test::read_sealed(*reader, file) == bytes) << name << " " << file;
      }
      const auto counts = must(repository->pool_usage(id, number)).counts;
      if (counts && placement == Placement::kLineagePool) promoted += counts->promoted_bytes;
    }
    std::uint64_t stored_without_promoted() const {
      return must(repository->stats()).unique_bytes - promoted;
    }

    const Placement placement;
    const test::TempDirectory directory;
    const std::string path = directory.path() + "/repo";
    std::unique_ptr<Repository> repository;
    std::vector<SeriesId> ids;
    std::uint64_t promoted = 0;
  };

  /// Stores five versions of each host. `file(host, version, number)` is the content of a file.
  template <typename File>
  void expect_exact(int files, const File& file) {
    Side measured(Placement::kLineagePool);
    Side exact(Placement::kPool);
    for (int version = 1; version <= 5; ++version) {
      for (int host = 0; host < 2 * kHosts; ++host) {
        std::map<std::string, std::string> tree;
        for (int i = 0; i < files; ++i) {
          tree["f" + std::to_string(i)] = file(host, version, static_cast<std::uint64_t>(i));
        }
        measured.store(host, version, tree);
        exact.store(host, version, tree);
        ASSERT_LE(measured.stored_without_promoted() * 100, exact.stored_without_promoted() * 102)
            << "host " << host << ", version " << version;
      }
    }
  }

  const test::PreferMemory in_memory_;
};

// The limits are those of each version, not of the mean. A run has fewer than 16 chunks of 4 KiB.
TEST_F(PieceGate, ScatteredPiecesAreStoredOnceBesideThePromoted) {
  expect_exact(12, [](int host, int version, std::uint64_t file) {
    std::mt19937_64 random(file * 100 + static_cast<std::uint64_t>(host));
    std::string bytes;
    for (std::uint64_t piece = 0; bytes.size() < 200'000; ++piece) {
      const std::uint64_t place = random() % 400;  // All hosts take their pieces from these.
      bytes += test::noise(8'000 + place % 5 * 10'000, 5'000'000 + place);
      const bool changed = static_cast<int>(random() % 20) < version - 1;
      const auto own = (file * 10 + static_cast<std::uint64_t>(host)) * 1000 + piece * 10;
      bytes += test::noise(random() % 20'000,
                           10'000'000 + own + static_cast<std::uint64_t>(changed ? version : 0));
    }
    return bytes;
  });
}

TEST_F(PieceGate, SmallFilesOfSeveralHostsAreStoredOnceBesideThePromoted) {
  expect_exact(300, [](int host, int version, std::uint64_t file) {
    std::mt19937_64 random(file);
    const std::size_t bytes = 200 + random() % 12'000;
    const bool is_shared = (random() >> static_cast<unsigned>(host)) % 2 == 0;
    const auto changes = static_cast<std::uint64_t>(version) / (2 + random() % 10);
    const auto owner = is_shared ? 99 : static_cast<std::uint64_t>(host);
    return test::noise(bytes, 20'000'000 + (file * 100 + owner) * 10 + changes);
  });
}

INSTANTIATE_TEST_SUITE_P(Placements, PoolGate,
                         testing::Values(Placement::kPool, Placement::kLineagePool),
                         [](const auto& param) {
                           return param.param == Placement::kPool ? "Pool" : "LineagePool";
                         });

}  // namespace
}  // namespace varve
