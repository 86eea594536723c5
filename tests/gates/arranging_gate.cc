// SPDX-License-Identifier: Apache-2.0
// Arranging after a small change reads no more records in a series with many old versions than in
// one with few.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/prefer_memory.h"
#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"

namespace varve {
namespace {

using test::must;

constexpr int kFiles = 30;
constexpr int kFew = 30;
constexpr int kMany = 120;

class ArrangingGate : public testing::Test {
 protected:
  ArrangingGate() {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  /// Stores a version in which `changes` of all files are new.
  void store(int changes) {
    for (int i = 0; i < changes; ++i) ++changes_of_[static_cast<std::size_t>(round_++ % kFiles)];
    const auto name = "v" + std::to_string(++versions_);
    const auto number = must(repository_->open_version(series_, name, test::folder())).number;
    {
      const auto writer = must(repository_->writer(series_));
      for (std::size_t file = 0; file < changes_of_.size(); ++file) {
        test::write_file(*writer, kRootIno, "f" + std::to_string(file),
                         test::noise(6000, file * 10000 + changes_of_[file]));
      }
    }
    must(repository_->seal(series_, number, ""));
  }
  void store_until(int versions) {
    while (versions_ < versions) {
      store(4);
      must(repository_->arrange(series_, {}));
    }
  }

  /// Returns the records that arranging reads after a change. Takes the median, because some
  /// arrangings merge runs and others do not.
  std::uint64_t records_of_one_change() {
    std::vector<std::uint64_t> counts;
    for (int i = 0; i < 9; ++i) {
      store(1);
      counts.push_back(
          test::records_read(*repository_, [&] { must(repository_->arrange(series_, {})); }));
    }
    std::sort(counts.begin(), counts.end());
    return counts[counts.size() / 2];
  }

  const test::PreferMemory in_memory_;
  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  int versions_ = 0;
  int round_ = 0;
  std::vector<std::uint64_t> changes_of_ = std::vector<std::uint64_t>(kFiles);
};

TEST_F(ArrangingGate, OldVersionsAddNoRecordsToASmallChange) {
  store_until(kFew);
  const auto few = records_of_one_change();
  store_until(kMany);
  const auto many = records_of_one_change();
  EXPECT_LE(many, few + few / 4) << "after " << kMany << " versions instead of " << kFew;
}

TEST_F(ArrangingGate, ArrangedSeriesIsLookedAtOnceAndCheaply) {
  store_until(kFew);
  const auto few =
      test::records_read(*repository_, [&] { must(repository_->arrange(series_, {})); });
  store_until(kMany);
  const auto many =
      test::records_read(*repository_, [&] { must(repository_->arrange(series_, {})); });
  RecordProperty("few", static_cast<int>(few));
  RecordProperty("many", static_cast<int>(many));
  EXPECT_LE(many, few + few / 4);
}

}  // namespace
}  // namespace varve
