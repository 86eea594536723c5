// SPDX-License-Identifier: Apache-2.0
// The sizes of versions, against slower ways to compute the same: the forecast of deleting each
// version alone, and the estimate of its whole set of chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

constexpr std::size_t kUsagePieceBytes = 12000;

class UsageTest : public testing::Test {
 protected:
  UsageTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  std::string some_bytes() {
    std::string bytes;
    for (std::uint64_t i = 1 + pick(3); i > 0; --i) bytes += noise(kUsagePieceBytes, pick(40));
    return bytes;
  }
  void write_some() {
    const auto writer = must(repository_->writer(series_));
    for (std::uint64_t i = 1 + pick(4); i > 0; --i) {
      const auto name = "f" + std::to_string(pick(8));
      if (writer->lookup(kRootIno, name)) must(writer->unlink(kRootIno, name));
      write_file(*writer, kRootIno, name, some_bytes());
    }
    must(writer->sync());
  }
  std::vector<VersionNumber> sealed() {
    std::vector<VersionNumber> numbers;
    for (const auto& version : must(repository_->versions(series_))) {
      if (version.state == VersionState::kSealed) numbers.push_back(version.number);
    }
    return numbers;
  }

  // Makes one change. Versions are written, cloned, dropped, deleted, locked and arranged.
  void step(int at) {
    const auto name = "v" + std::to_string(at);
    const auto numbers = sealed();
    const auto kind = pick(16);
    if (!open_) {
      if (numbers.empty() || kind < 6) {
        open_ = must(repository_->open_version(series_, name, folder())).number;
      } else if (kind < 12) {
        const auto source = kind < 9 ? numbers.back() : numbers[pick(numbers.size())];
        open_ = must(repository_->clone_version(series_, source, name)).number;
      } else if (kind < 14) {
        must(repository_->arrange(series_, {}));
      } else if (pick(4) == 0) {
        const Timestamp until{pick(2) == 0 ? 1000000000 : 4000000000, 0};
        static_cast<void>(repository_->lock_version(series_, numbers[pick(numbers.size())], until));
      } else {
        std::vector<VersionNumber> gone;
        for (const auto number : numbers) {
          if (pick(4) == 0) gone.push_back(number);
        }
        must(repository_->delete_versions(series_, gone, {.skip_held = true}));
      }
    } else if (kind < 7) {
      write_some();
    } else if (kind < 14) {
      must(repository_->seal(series_, *open_, ""));
      open_.reset();
    } else if (kind == 14) {
      must(repository_->abandon_version(series_, *open_, true));
      open_.reset();
    } else {
      must(repository_->delete_versions(series_, {numbers.begin(), numbers.begin() + pick(2)},
                                        {.skip_held = true}));
    }
  }

  void expect_equal_to_forecasts() {
    const auto all = must(repository_->version_usage(series_));
    std::vector<VersionNumber> numbers;
    for (const auto& usage : all) numbers.push_back(usage.number);
    ASSERT_EQ(numbers, sealed());
    std::map<VersionNumber, VersionLock> locks;
    for (const auto& lock : must(repository_->version_locks(series_))) locks[lock.number] = lock;
    for (const auto& usage : all) {
      SCOPED_TRACE(static_cast<std::uint32_t>(usage.number));
      const auto forecast = must(repository_->forecast_deletion(series_, {usage.number}));
      EXPECT_EQ(usage.unique_bytes, forecast.freed_bytes);
      EXPECT_EQ(usage.shared_bytes,
                usage.referenced_bytes - std::min(usage.referenced_bytes, forecast.chunk_bytes));
      const auto skipped =
          must(repository_->forecast_deletion(series_, {usage.number}, {.skip_held = true}));
      EXPECT_EQ(usage.lock_holds || !usage.base_of.empty(), !skipped.held.empty());
      EXPECT_EQ(usage.locked_until, locks[usage.number].locked_until);
      EXPECT_EQ(usage.lock_holds, locks[usage.number].holds);
      const auto alone = must(repository_->version_usage(series_, usage.number));
      EXPECT_EQ(alone.unique_bytes, usage.unique_bytes);
      EXPECT_EQ(alone.referenced_bytes, usage.referenced_bytes);
      EXPECT_EQ(alone.shared_bytes, usage.shared_bytes);
    }
  }

  // Closes the repository, and compares with the sum over each version's set.
  void expect_equal_to_estimates() {
    const auto all = must(repository_->version_usage(series_));
    must(repository_->close());
    repository_.reset();
    {
      meta::EnvOptions options;
      options.tables = meta::catalog::kTables;
      options.read_only = true;
      const auto catalog = must(meta::Env::open(path_ + "/catalog", options));
      const auto txn = must(meta::ReadTxn::begin(catalog));
      for (const auto& usage : all) {
        const auto chunks = must(catalog::version_chunks(txn, series_, usage.number));
        EXPECT_EQ(usage.referenced_bytes,
                  must(layout::estimate_bytes(txn, catalog::store_of(series_), chunks)));
      }
    }
    repository_ = reopen(path_);
  }

  const TempDirectory directory_;
  const std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::mt19937_64 random_{1};
  std::optional<VersionNumber> open_;
};

TEST_F(UsageTest, RandomHistoriesGiveTheFiguresOfSlowerWays) {
  for (int at = 0; at < 240; ++at) {
    SCOPED_TRACE(at);
    step(at);
    if (at % 4 == 3) expect_equal_to_forecasts();
    if (at % 20 == 19) expect_equal_to_estimates();
    if (HasFailure()) return;
  }
  EXPECT_GT(sealed().size(), 3U);
}

TEST_F(UsageTest, OnlySealedVersionsHaveASize) {
  const auto open = must(repository_->open_version(series_, "v", folder())).number;
  EXPECT_TRUE(must(repository_->version_usage(series_)).empty());
  EXPECT_EQ(code_of(repository_->version_usage(series_, open)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(repository_->version_usage(series_, VersionNumber{7})), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(repository_->version_locks(SeriesId{9})), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace varve::test
