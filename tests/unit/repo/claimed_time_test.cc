// SPDX-License-Identifier: Apache-2.0
// The claimed time of a version, and the names of series.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "catalog/claimed_time.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/repair.h"
#include "varve/repository.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

constexpr Timestamp kClaimed{-86400, 5};

class ClaimedTime : public testing::Test {
 protected:
  void SetUp() override {
    must(Repository::create(path_, small_chunks(Codec::kZstd)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }
  VersionInfo seal(const std::string& name, const Timestamp* claimed) {
    const auto info = must(repository_->open_version(series_, name, folder()));
    write_file(*must(repository_->writer(series_)), kRootIno, "file", name);
    if (claimed != nullptr) must(claim_time(*repository_, info, *claimed));
    return must(repository_->seal(series_, info.number, "")).info;
  }
  void rebuild_catalog() {
    repository_.reset();
    RepairOptions options;
    options.rebuild_catalog = true;
    must(must(Repair::plan(path_, options, false, {}))->execute({}));
    repository_ = reopen(path_);
  }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/r";
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
};

TEST_F(ClaimedTime, SurvivesARebuiltCatalogAndARename) {
  EXPECT_EQ(seal("1", &kClaimed).claimed_at, kClaimed);
  EXPECT_EQ(seal("2", nullptr).claimed_at, std::nullopt);
  must(repository_->rename_version(series_, VersionNumber{1}, "one"));
  must(repository_->rename_series(series_, "renamed"));
  for (int round = 0; round < 2; ++round) {
    const auto series = must(repository_->find_series("renamed")).id;
    EXPECT_EQ(code_of(repository_->find_series("s")), ErrorCode::kNotFound);
    const auto one = must(repository_->find_version(series, "one"));
    EXPECT_EQ(one.claimed_at, kClaimed);
    EXPECT_EQ(one.series_name, "renamed");
    EXPECT_GT(one.sealed_at.seconds, 0);
    EXPECT_EQ(must(repository_->find_version(series, "2")).claimed_at, std::nullopt);
    rebuild_catalog();
  }
}

TEST_F(ClaimedTime, StartOf1970IsATime) {
  const Timestamp start{};
  const auto sealed = seal("1", &start);
  EXPECT_EQ(sealed.claimed_at, start);
  EXPECT_EQ(data_time(sealed), start);
  rebuild_catalog();
  EXPECT_EQ(must(repository_->find_version(series_, "1")).claimed_at, start);
}

TEST_F(ClaimedTime, IsNoAttributeOfTheRootAndNotInherited) {
  const auto one = seal("1", &kClaimed);
  const auto reader = must(repository_->reader(series_, one.number));
  EXPECT_TRUE(must(reader->xattrs(0)).empty());
  EXPECT_FALSE(must(reader->may_have_xattrs([] { return true; })));
  const auto clone = must(repository_->clone_version(series_, one.number, "2"));
  const auto writer = must(repository_->writer(series_));
  EXPECT_TRUE(must(writer->xattrs(kRootIno)).empty());
  EXPECT_EQ(must(repository_->seal(series_, clone.number, "")).info.claimed_at, std::nullopt);
  EXPECT_EQ(code_of(claim_time(*repository_, one, kClaimed)), ErrorCode::kNotFound);
}

TEST_F(ClaimedTime, DamagedValuesMeanNone) {
  const auto of = [](const std::string& value) {
    return catalog::claimed_time(VersionNumber{3},
                                 {{std::string(catalog::kClaimedAttribute), value}});
  };
  EXPECT_EQ(of(catalog::encode_claimed_time(VersionNumber{3}, kClaimed)), kClaimed);
  EXPECT_EQ(of(catalog::encode_claimed_time(VersionNumber{4}, kClaimed)), std::nullopt);
  for (const char* bad : {"", "3", "3 4", "3 4 ", "3 4 1000000000", "3 4 5 6", "3  4 5", "x 4 5",
                          "3 99999999999999999999 5", "3 4 5\n"}) {
    EXPECT_EQ(of(bad), std::nullopt) << bad;
  }
}

TEST_F(ClaimedTime, ASeriesKeepsItsNameWhileAVersionIsOpen) {
  seal("1", nullptr);
  must(repository_->create_series("other"));
  EXPECT_EQ(code_of(repository_->rename_series(series_, "other")), ErrorCode::kExists);
  EXPECT_EQ(code_of(repository_->rename_series(series_, "a/b")), ErrorCode::kInvalid);
  const auto open = must(repository_->open_version(series_, "2", folder()));
  EXPECT_EQ(code_of(repository_->rename_series(series_, "new")), ErrorCode::kBusy);
  must(repository_->abandon_version(series_, open.number, true));
  must(repository_->rename_series(series_, "new"));
  EXPECT_EQ(must(repository_->find_series("new")).id, series_);
}

}  // namespace
}  // namespace varve::test
