// SPDX-License-Identifier: Apache-2.0
// The defaults for arranging and pruning that a repository keeps.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/repair.h"
#include "varve/repository.h"
#include "varve/upkeep.h"

namespace varve::test {
namespace {

UpkeepSettings some_settings() {
  UpkeepSettings settings;
  settings.arrange_bytes_per_second = 1;
  settings.keep.last = 3;
  settings.keep.yearly = 7;
  settings.keep.within_seconds = 86400;
  settings.keep.by_claimed = false;
  settings.guards_sources = false;
  return settings;
}

class UpkeepSettingsTest : public testing::Test {
 protected:
  UpkeepSettingsTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    ArrangeSettings settings;
    settings.window = 1;
    must(repository_->set_arrange_settings(settings));
    for (const char* name : {"a", "b"}) must(repository_->create_series(name));
  }

  SeriesId series(const char* name) { return must(repository_->find_series(name)).id; }
  std::uint64_t departing(const char* name) {
    return must(repository_->arranging_debt(series(name))).departing_bytes;
  }
  /// Seals versions of which each has half of the files of the one before.
  void store_versions(const char* name) {
    const SeriesId id = series(name);
    for (std::uint64_t round = 0; round < 5; ++round) {
      const auto number =
          must(repository_->open_version(id, "v" + std::to_string(round), folder())).number;
      {
        const auto version = must(repository_->writer(id));
        for (std::uint64_t file = 0; file < 16; ++file) {
          const bool is_new = (file + round) % 2 == 0;
          write_file(*version, kRootIno, "f" + std::to_string(file),
                     noise(20000, file * 100 + (is_new ? round : round - 1)));
        }
      }
      must(repository_->seal(id, number, ""));
    }
  }
  void reopen_to_arrange(std::optional<std::uint64_t> rate) {
    must(repository_->close());
    repository_.reset();
    auto options = quiet_options();
    options.arrange = true;
    options.arrange_bytes_per_second = rate;
    repository_ = reopen(path_, options);
  }

  TempDirectory directory_;
  const std::string path_;
  std::unique_ptr<Repository> repository_;
};

TEST_F(UpkeepSettingsTest, AreKeptAndReset) {
  EXPECT_EQ(must(repository_->upkeep_settings()), UpkeepSettings());
  must(repository_->set_upkeep_settings(some_settings()));
  must(repository_->close());
  repository_.reset();
  repository_ = reopen(path_);
  EXPECT_EQ(must(repository_->upkeep_settings()), some_settings());
  must(repository_->set_upkeep_settings({}));
  EXPECT_EQ(must(repository_->upkeep_settings()), UpkeepSettings());
}

TEST_F(UpkeepSettingsTest, AReaderSeesThemAndCannotChangeThem) {
  must(repository_->set_upkeep_settings(some_settings()));
  must(repository_->close());
  repository_.reset();
  auto options = quiet_options();
  options.read_only = true;
  repository_ = reopen(path_, options);
  EXPECT_EQ(must(repository_->upkeep_settings()), some_settings());
  EXPECT_EQ(code_of(repository_->set_upkeep_settings({})), ErrorCode::kReadOnly);
}

TEST_F(UpkeepSettingsTest, ARebuiltCatalogHasThem) {
  store_versions("a");
  must(repository_->set_upkeep_settings(some_settings()));
  must(repository_->close());
  repository_.reset();
  std::filesystem::remove_all(path_ + "/catalog");
  must(must(Repair::plan(path_, {}, false, {}))->execute({}));
  repository_ = reopen(path_);
  EXPECT_EQ(must(repository_->upkeep_settings()), some_settings());
}

// At a byte a second the first series takes longer than the test, so the second one never begins.
TEST_F(UpkeepSettingsTest, BackgroundArrangingKeepsToTheRateUnlessItIsGivenOne) {
  store_versions("a");
  store_versions("b");
  ASSERT_GT(departing("a"), 0U);
  const std::uint64_t before = departing("b");
  ASSERT_GT(before, 0U);
  must(repository_->set_upkeep_settings(some_settings()));
  reopen_to_arrange(std::nullopt);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500)) {
    ASSERT_EQ(departing("b"), before) << "arranged faster than the rate";
    std::this_thread::yield();
  }
  reopen_to_arrange(0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (departing("a") + departing("b") != 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace varve::test
