// SPDX-License-Identifier: Apache-2.0
// Tests rebuilding a lost catalog: every sealed version must return unchanged, under its name.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "repair_fixture.h"
#include "support/file_content.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

TEST_P(RepairTest, NothingIsDoneToASoundRepository) {
  const auto report = repair();
  EXPECT_TRUE(steps_.empty());
  EXPECT_TRUE(report.problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, LostCatalogComesBackWithNamesAndLocks) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  must(repository_->rename_version(series_, VersionNumber{2}, "second"));
  contents_["second"] = contents_["v2"];
  must(repository_->lock_version(series_, VersionNumber{3}, {now + 1000, 0}));
  must(repository_->delete_versions(series_, {VersionNumber{1}}));
  lose_catalog();
  EXPECT_EQ(code_of(Repository::open(path_, quiet_options())), ErrorCode::kCorrupt);
  const auto report = repair();
  EXPECT_EQ(report.versions, 3U);
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.old_catalog, "");
  expect_whole({"second", "v3", "v4"});
  EXPECT_EQ(code_of(repository_->delete_versions(series_, {VersionNumber{3}})),
            ErrorCode::kNotPermitted);
  add_version(5);
  expect_whole({"second", "v3", "v4", "v5"});
}

TEST_P(RepairTest, ArrangedRepositoryComesBackAndGoesOn) {
  must(repository_->arrange(series_, {}));
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
  must(repository_->delete_versions(series_, {VersionNumber{1}, VersionNumber{4}}));
  expect_whole({"v2", "v3"});
  add_version(5);
  add_version(6);
  must(repository_->arrange(series_, {}));
  expect_whole({"v2", "v3", "v5", "v6"});
  // A second round, with volumes that returned to the active set.
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  must(reopen(path_)->arrange(series_, {}));
  expect_whole({"v2", "v3", "v5", "v6"});
}

// The space of chunks that no version refers to any more goes with the containers, as before.
TEST_P(RepairTest, ForecastsAreTheSameAfterTheCatalogWasLost) {
  // Leaves dead chunks between others, in files of the active set.
  must(repository_->delete_versions(series_, {VersionNumber{1}}));
  const std::vector<std::vector<VersionNumber>> sets = {
      {VersionNumber{2}},
      {VersionNumber{3}},
      {VersionNumber{4}},
      {VersionNumber{3}, VersionNumber{4}},
      {VersionNumber{2}, VersionNumber{3}, VersionNumber{4}}};
  const auto forecasts = [&] {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (const auto& set : sets) {
      const auto forecast = must(repository_->forecast_deletion(series_, set, {}));
      all.emplace_back(forecast.freed_bytes, forecast.chunk_bytes);
    }
    return all;
  };
  const auto before = forecasts();
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v2", "v3", "v4"});
  EXPECT_EQ(forecasts(), before);
  must(repository_->delete_versions(series_, sets.back()));
  EXPECT_TRUE(fs::is_empty(in_series("active")));
}

TEST_P(RepairTest, CopiesThatACrashLeftDoNoHarm) {
  const auto before = directory_.path() + "/before";
  fs::copy(in_series("active"), before, fs::copy_options::recursive);
  must(repository_->arrange(series_, {}));
  lose_catalog();
  // The step's commit is done, but the obsolete files still exist, and one of them is damaged.
  bool damaged = false;
  for (const auto& at : fs::directory_iterator(before)) {
    const auto copy = in_series("active/") + at.path().filename().string();
    if (fs::exists(copy)) continue;
    fs::copy(at.path(), copy);
    if (std::exchange(damaged, true)) continue;
    std::fstream stream(copy, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(fs::file_size(copy) / 2));
    stream.write("damaged", 7);
  }
  EXPECT_TRUE(damaged);
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, DamagedCatalogIsKeptBesideTheNewOne) {
  repository_.reset();
  const auto data = path_ + "/catalog/data.mdb";
  fs::resize_file(data, 12288);
  const auto report = repair();
  EXPECT_EQ(report.old_catalog, path_ + "/catalog.damaged-1");
  EXPECT_TRUE(fs::exists(path_ + "/catalog.damaged-1/data.mdb"));
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, OlderCatalogIsRefusedForWritingAndMadeAnew) {
  repository_.reset();
  const auto older = directory_.path() + "/older";
  fs::copy(path_ + "/catalog", older, fs::copy_options::recursive);
  repository_ = reopen(path_);
  add_version(5);
  must(repository_->arrange(series_, {}));
  repository_.reset();
  fs::remove_all(path_ + "/catalog");
  fs::copy(older, path_ + "/catalog", fs::copy_options::recursive);
  EXPECT_EQ(code_of(Repository::open(path_, quiet_options())), ErrorCode::kCorrupt);
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4", "v5"});
}

TEST_P(RepairTest, LostSuperblockComesBackFromTheLabels) {
  repository_.reset();
  std::ifstream in(path_ + "/varve.repo");
  const std::string text = varve::test::rest_of(in);
  fs::remove(path_ + "/varve.repo");
  repair();
  ASSERT_EQ(steps_.size(), 1U);
  EXPECT_EQ(steps_[0].kind, RepairStep::Kind::kSuperblock);
  std::ifstream again(path_ + "/varve.repo");
  EXPECT_EQ(varve::test::rest_of(again), text);
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, WithoutLabelsTheManifestsDecide) {
  must(repository_->rename_version(series_, VersionNumber{2}, "second"));
  lose_catalog();
  fs::remove(in_series("labels"));
  EXPECT_FALSE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, OpenVersionGoesOn) {
  const auto number = must(repository_->open_version(series_, "v5.partial", folder())).number;
  const auto version = must(repository_->writer(series_));
  fill(*version, "v5", 5);
  must(version->sync());
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
  must(repository_->seal(series_, number, ""));
  expect_whole({"v1", "v2", "v3", "v4", "v5"});
}

TEST_P(RepairTest, OpenVersionWithoutItsStagingIsSaidToBeLost) {
  must(repository_->open_version(series_, "v5", folder()));
  fill(*must(repository_->writer(series_)), "v5", 5);
  lose_catalog();
  fs::remove_all(path_ + "/staging");
  EXPECT_EQ(repair().problems.size(), 1U);
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, OpenVersionWithoutItsStagingIsNotTakenForAnEmptyOne) {
  must(repository_->open_version(series_, "v5", folder()));
  {
    const auto version = must(repository_->writer(series_));
    fill(*version, "v5", 5);
    must(version->sync());
  }
  repository_.reset();
  fs::remove_all(path_ + "/staging");
  repository_ = reopen(path_);
  EXPECT_EQ(code_of(repository_->writer(series_)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(repository_->open_version(series_, "v6", folder())), ErrorCode::kCorrupt);
  EXPECT_EQ(repair().problems.size(), 1U);
  repository_ = reopen(path_);
  add_version(6);
  expect_whole({"v1", "v2", "v3", "v4", "v6"});
}

TEST_P(RepairTest, VersionThatGoesOnFromItsBaseIsBack) {
  const auto number =
      must(repository_->clone_version(series_, VersionNumber{4}, "v5.partial")).number;
  const auto version = must(repository_->writer(series_));
  write_file(*version, kRootIno, "more", noise(50000, 9));
  must(version->sync());
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
  must(repository_->seal(series_, number, ""));
  const auto reader = must(repository_->reader(series_, number));
  EXPECT_TRUE(read_sealed(*reader, "more") == noise(50000, 9));
  EXPECT_TRUE(read_sealed(*reader, "d/a") == contents_["v4"]["d/a"]);
  expect_clean();
}

// Two histories of one repository give the same number to two versions. A file of one history in
// the other one is sound by itself.
TEST_P(RepairTest, AManifestOfAnotherHistoryIsKeptAndWrittenAgain) {
  const auto fork = directory_.path() + "/fork";
  repository_.reset();
  copy_crashed(path_, fork);
  {
    const auto other = reopen(fork);
    const auto number = must(other->open_version(series_, "v5", folder())).number;
    write_file(*must(other->writer(series_)), kRootIno, "other", noise(50000, 99));
    must(other->seal(series_, number, ""));
    must(other->close());
  }
  repository_ = reopen(path_);
  add_version(5);
  must(repository_->close());
  repository_.reset();
  const auto manifest = in_series("manifests/00000005.man");
  fs::copy_file(fork + "/series/00000001/manifests/00000005.man", manifest,
                fs::copy_options::overwrite_existing);
  repository_ = reopen(path_);
  const auto report = must(repository_->check({}, {}));
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_EQ(report.damages[0].where, manifest);
  RepairOptions options;
  options.skip_mixed = true;
  repair(options);
  EXPECT_TRUE(fs::exists(manifest + ".damaged-1"));
  ASSERT_EQ(steps_.size(), 1U);
  EXPECT_EQ(steps_[0].where, manifest);
  expect_whole({"v1", "v2", "v3", "v4", "v5"});
  lose_catalog();
  repair();
  expect_whole({"v1", "v2", "v3", "v4", "v5"});
}

TEST_P(RepairTest, DamagedManifestCostsNoOtherVersion) {
  lose_catalog();
  const auto manifest = in_series("manifests/00000004.man");
  std::fstream stream(manifest, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(fs::file_size(manifest) - 20));
  stream.write("damaged", 7);
  stream.close();
  EXPECT_FALSE(repair().problems.empty());
  repository_ = reopen(path_);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    const auto reader = must(repository_->reader(series_, VersionNumber{i}));
    for (const auto& [file, bytes] : contents_["v" + std::to_string(i)]) {
      EXPECT_TRUE(read_sealed(*reader, file) == bytes);
    }
  }
  // Lost data stays lost. Another run finds the same, and does not touch the catalog.
  repository_.reset();
  const auto again = must(Repair::plan(path_, {}, false, {}));
  ASSERT_EQ(again->steps().size(), 1U);
  EXPECT_EQ(again->steps()[0].kind, RepairStep::Kind::kManifest);
  EXPECT_FALSE(again->lost_parts().empty());
  EXPECT_FALSE(fs::exists(path_ + "/catalog.damaged-1"));
}

TEST_P(RepairTest, MissingManifestsAreWrittenAtTheNextOpening) {
  repository_.reset();
  fs::remove_all(in_series("manifests"));
  fs::remove(in_series("labels"));
  repository_ = reopen(path_);
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, DamagedChunksAreStoredAgainAndComeBack) {
  const auto segment = in_series("active/00000003.seg");  // The data of v4: its file d/a.
  repository_.reset();
  flip(segment, fs::file_size(segment) / 2);
  auto report = repair();
  EXPECT_GT(report.chunks_quarantined, 0U);
  EXPECT_EQ(report.chunks_rehomed, 0U);
  EXPECT_EQ(repair().chunks_rehomed, 0U);
  EXPECT_TRUE(steps_.empty());  // A second plan does not list known damage again.
  repository_ = reopen(path_);
  const auto damaged = must(repository_->reader(series_, VersionNumber{4}));
  EXPECT_THROW(read_sealed(*damaged, "d/a"), std::runtime_error);
  EXPECT_TRUE(read_sealed(*damaged, "d/b") == contents_["v4"]["d/b"]);
  // The same content arrives again. It must not count as stored.
  const auto number = must(repository_->open_version(series_, "v5", folder())).number;
  const auto version = must(repository_->writer(series_));
  fill(*version, "v5", 4);
  must(repository_->seal(series_, number, ""));
  EXPECT_TRUE(read_sealed(*must(repository_->reader(series_, number)), "d/a") ==
              contents_["v4"]["d/a"]);
  report = repair();
  EXPECT_GT(report.chunks_rehomed, 0U);
  EXPECT_EQ(report.chunks_quarantined, 0U);
  expect_whole({"v1", "v2", "v3", "v4", "v5"});
  repair();
  EXPECT_TRUE(steps_.empty());
  must(reopen(path_)->arrange(series_, {}));
  lose_catalog();
  repair();
  expect_whole({"v1", "v2", "v3", "v4", "v5"});
}

TEST_P(RepairTest, DamagedChunksComeFromACopy) {
  for (const auto& at : fs::directory_iterator(in_series("active"))) {
    flip(at.path().string(), fs::file_size(at.path()) / 2);
  }
  RepairOptions options;
  options.from = directory_.path() + "/copies";
  fs::create_directories(options.from + "/below");
  int i = 0;
  for (const auto& [version, files] : contents_) {
    for (const auto& [name, bytes] : files) {
      std::ofstream(options.from + "/below/" + std::to_string(i++), std::ios::binary) << bytes;
    }
  }
  const auto report = repair(options);
  EXPECT_GT(report.chunks_rehomed, 0U);
  EXPECT_EQ(report.chunks_quarantined, 0U);
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, OneWrongByteOfAHeaderIsCorrected) {
  const auto segment = in_series("active/00000002.seg");
  for (const std::uint64_t offset : {0U, 17U, 50U, 121U, 128U, 300U, 4000U}) {
    repository_.reset();
    flip(segment, offset);
    repair();
    ASSERT_EQ(steps_.size(), 1U) << offset;
    EXPECT_EQ(steps_[0].kind, RepairStep::Kind::kHeader);
    repair();
    EXPECT_TRUE(steps_.empty());
  }
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, DamagedManifestsAreWrittenAnew) {
  repository_.reset();
  for (const char* name : {"manifests/00000002.man", "manifests/00000003.man"}) {
    ASSERT_TRUE(fs::exists(in_series(name)));
    flip(in_series(name), fs::file_size(in_series(name)) / 2);
  }
  repair();
  EXPECT_EQ(steps_.size(), 2U);
  reopen(path_);
  repair();
  EXPECT_TRUE(steps_.empty());
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(RepairTest, LostFileOfContainersCostsItsChunksOnly) {
  repository_.reset();
  fs::remove(in_series("active/00000003.seg"));
  EXPECT_GT(repair().chunks_quarantined, 0U);
  repository_ = reopen(path_);
  const auto v3 = must(repository_->reader(series_, VersionNumber{3}));
  EXPECT_TRUE(read_sealed(*v3, "d/a") == contents_["v3"]["d/a"]);
  const auto v4 = must(repository_->reader(series_, VersionNumber{4}));
  EXPECT_TRUE(read_sealed(*v4, "d/b") == contents_["v4"]["d/b"]);
  EXPECT_THROW(read_sealed(*v4, "d/a"), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Codecs, RepairTest, testing::Values(Codec::kZstd));

}  // namespace
}  // namespace varve::test
