// SPDX-License-Identifier: Apache-2.0
// Many small versions leave few files and containers. Coalescing copies each byte a few times, and
// nothing of large volumes.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/prefer_memory.h"
#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr int kVersions = 300;
constexpr int kFiles = 60;
constexpr int kChanges = 12;

class CoalescingGate : public testing::Test {
 protected:
  CoalescingGate() {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  /// Stores a version in which `changes` of all files are new.
  VersionNumber store(int changes, std::size_t file_bytes) {
    for (int i = 0; i < changes || seed_of_.size() < kFiles; ++i) {
      const auto file = static_cast<int>(random_() % kFiles);
      seed_of_[seed_of_.size() < kFiles ? static_cast<int>(seed_of_.size()) : file] = ++seed_;
    }
    const auto number =
        must(repository_->open_version(series_, "v" + std::to_string(seed_), test::folder()))
            .number;
    {
      const auto writer = must(repository_->writer(series_));
      for (const auto& [file, seed] : seed_of_) {
        test::write_file(*writer, kRootIno, "f" + std::to_string(file),
                         test::noise(file_bytes, seed));
      }
    }
    must(repository_->seal(series_, number, ""));
    must(repository_->arrange(series_, {}));
    contents_[number] = seed_of_;
    return number;
  }

  void expect_whole(std::size_t file_bytes) {
    CheckOptions options;
    const auto report = must(repository_->check(options, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
    for (const auto& [number, files] : contents_) {
      const auto reader = must(repository_->reader(series_, number));
      for (const auto& [file, seed] : files) {
        ASSERT_TRUE(test::read_sealed(*reader, "f" + std::to_string(file)) ==
                    test::noise(file_bytes, seed))
            << "version " << static_cast<std::uint32_t>(number);
      }
    }
  }

  std::size_t files_in(const char* folder) const {
    const auto path = path_ + "/series/00000001/" + folder;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  std::uint64_t bytes_in(const char* folder) const {
    std::uint64_t bytes = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(path_ + "/series/00000001/" + folder)) {
      bytes += file.file_size();
    }
    return bytes;
  }

  const test::PreferMemory in_memory_;
  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::mt19937_64 random_{1};
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::uint64_t seed_ = 0;
  std::map<int, std::uint64_t> seed_of_;
  std::map<VersionNumber, std::map<int, std::uint64_t>> contents_;
};

TEST_F(CoalescingGate, ManySmallVersionsLeaveFewFilesAndContainers) {
  constexpr std::size_t kFileBytes = 3000;
  for (int i = 0; i < kVersions; ++i) store(kChanges, kFileBytes);
  const auto stats = must(repository_->stats());
  RecordProperty("files", static_cast<int>(files_in("volumes") + files_in("active")));
  RecordProperty("containers", static_cast<int>(stats.containers));
  EXPECT_LE(files_in("volumes") + files_in("active"), kVersions / 5);
  EXPECT_LE(stats.containers, kVersions / 2);
  EXPECT_LE(test::metric(*repository_, "varve_arrange_coalesced_bytes_total"),
            4 * bytes_in("volumes"));
  expect_whole(kFileBytes);
}

// Every second version is deleted, then all but a few: at most half of what stays is dead.
TEST_F(CoalescingGate, DeletedVersionsLeaveAtMostHalfOfSmallVolumes) {
  constexpr std::size_t kFileBytes = 3000;
  for (int i = 0; i < 80; ++i) store(kChanges, kFileBytes);
  for (const std::size_t keep : {2, 16}) {
    std::vector<VersionNumber> gone;
    std::size_t i = 0;
    for (const auto& entry : contents_) {
      if (++i % keep != 0) gone.push_back(entry.first);
    }
    const auto forecast = must(repository_->forecast_deletion(series_, gone, {}));
    const auto deleted = must(repository_->delete_versions(series_, gone, {}));
    EXPECT_EQ(deleted.freed_bytes, forecast.freed_bytes);
    EXPECT_EQ(deleted.dead_bytes, forecast.dead_bytes);
    EXPECT_GT(deleted.freed_bytes + deleted.dead_bytes, deleted.chunk_bytes);
    for (const auto number : gone) contents_.erase(number);
    const auto written = test::metric(*repository_, "varve_arrange_coalesced_bytes_total");
    must(repository_->arrange(series_, {}));
    EXPECT_LE(test::metric(*repository_, "varve_arrange_coalesced_bytes_total") - written,
              2 * deleted.dead_bytes);
    const auto stats = must(repository_->stats());
    EXPECT_LE(bytes_in("volumes") + bytes_in("active"), 5 * stats.unique_bytes / 2);
    expect_whole(kFileBytes);
  }
}

TEST_F(CoalescingGate, LargeVolumesAreOnlyCut) {
  constexpr std::size_t kFileBytes = 200000;
  std::vector<VersionNumber> versions;
  for (int i = 0; i < 12; ++i) versions.push_back(store(40, kFileBytes));
  const auto coalesced = test::metric(*repository_, "varve_arrange_coalesced_bytes_total");
  EXPECT_EQ(coalesced, 0U);
  const auto before = bytes_in("volumes");
  const std::vector<VersionNumber> gone{versions[1], versions[4], versions[5]};
  const auto deleted = must(repository_->delete_versions(series_, gone, {}));
  EXPECT_GE(deleted.freed_bytes, deleted.chunk_bytes * 9 / 10);
  EXPECT_GE(before - bytes_in("volumes"), deleted.chunk_bytes * 9 / 10);
  for (const auto number : gone) contents_.erase(number);
  must(repository_->arrange(series_, {}));
  EXPECT_EQ(test::metric(*repository_, "varve_arrange_coalesced_bytes_total"), coalesced);
  expect_whole(kFileBytes);
}

}  // namespace
}  // namespace varve
