// SPDX-License-Identifier: Apache-2.0
// The sizes of all versions cost at most twice as much for twice as many versions: `du`, `stat` and
// `prune` read a number of catalog records that grows with the versions and with the changes of
// each, not with their square.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr int kVersions = 24;
constexpr int kFiles = 4;

class UsageGate : public testing::Test {
 protected:
  UsageGate() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  // Stores versions that change one file each, and keep the others.
  void store(int from, int to) {
    for (int round = from; round < to; ++round) {
      const auto number =
          must(repository_->open_version(series_, "v" + std::to_string(round), test::folder()))
              .number;
      const auto writer = must(repository_->writer(series_));
      for (int file = 0; file < kFiles; ++file) {
        const int changed = round - (round + file) % kFiles;
        test::write_file(*writer, kRootIno, "f" + std::to_string(file),
                         test::noise(20000, static_cast<std::uint64_t>(changed * kFiles + file)));
      }
      must(repository_->seal(series_, number, ""));
      if (round % 8 == 7) must(repository_->arrange(series_, {}));
    }
  }

  template <typename Call>
  std::uint64_t records(const Call& call) {
    return test::records_read(*repository_, call);
  }

  const test::TempDirectory directory_;
  const std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
};

TEST_F(UsageGate, TwiceTheVersionsCostAtMostTwiceTheRecords) {
  struct Cost {
    std::uint64_t all, one, locks, forecast;
  };
  const auto measure = [&] {
    std::vector<VersionNumber> numbers;
    for (const auto& version : must(repository_->versions(series_))) {
      numbers.push_back(version.number);
    }
    DeletionOptions skip;
    skip.skip_held = true;
    return Cost{records([&] { must(repository_->version_usage(series_)); }),
                records([&] { must(repository_->version_usage(series_, numbers.front())); }),
                records([&] { must(repository_->version_locks(series_)); }),
                records([&] { must(repository_->forecast_deletion(series_, numbers, skip)); })};
  };
  store(0, kVersions);
  const Cost half = measure();
  store(kVersions, 2 * kVersions);
  const Cost whole = measure();
  const auto grows_linearly = [](std::uint64_t once, std::uint64_t twice) {
    return static_cast<double>(twice) <= 2.2 * static_cast<double>(once) + 20;
  };
  EXPECT_PRED2(grows_linearly, half.all, whole.all);
  EXPECT_PRED2(grows_linearly, half.one, whole.one);
  EXPECT_PRED2(grows_linearly, half.locks, whole.locks);
  EXPECT_PRED2(grows_linearly, half.forecast, whole.forecast);
  EXPECT_LE(whole.all, 60U * 2 * kVersions);
  EXPECT_LE(whole.locks, 2U * 2 * kVersions);
}

}  // namespace
}  // namespace varve
