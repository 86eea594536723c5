// SPDX-License-Identifier: Apache-2.0
// Tests that the first repair of a folder with files of several states decides as the next one
// does.
#include <string>

#include "history_repair_fixture.h"

namespace varve::test {
namespace {

// One series has a version that the catalog never deleted, and another one labels of a later state.
// A repair that looked at the first series alone would remove those labels, with their locks, and
// the next repair would replace the catalog.
TEST_P(HistoryRepairTest, LaterLabelsBesideAVersionThatWasNotDeletedAreKept) {
  must(repository_->create_series("t"));
  repository_.reset();
  add_small(path_, "v1", 8, "t");
  add_small(path_, "v5", 1);
  const auto before = fork();
  repository_ = reopen(path_);
  must(repository_->delete_versions(series_, {VersionNumber{5}}));
  add_version(6);
  must(repository_->delete_versions(series_, {VersionNumber{1}}));
  const auto later = fork();
  add_small(later, "v2", 9, "t");
  take(before, "labels");
  for (const auto* const name : {"manifests", "active", "volumes"}) take_missing(before, name);
  const std::string other_series = "/series/00000002";
  fs::remove_all(path_ + other_series);
  fs::copy(later + other_series, path_ + other_series, fs::copy_options::recursive);

  EXPECT_EQ(code_of(plan(false)), ErrorCode::kInvalid);
  const auto report = must(must(plan(true))->execute({}));
  EXPECT_EQ(report.old_catalog, "");
  EXPECT_TRUE(names(report.problems, "s/v5 of another history"));
  EXPECT_TRUE(names(report.problems, "t/v2 of another history"));
  EXPECT_TRUE(fs::exists(path_ + other_series + "/labels.damaged-1"));
  EXPECT_TRUE(fs::exists(path_ + other_series + "/manifests/00000002.man.damaged-1"));
  const auto repaired = bytes();
  const auto again = must(must(plan(true))->execute({}));
  EXPECT_EQ(again.old_catalog, "");
  EXPECT_TRUE(bytes() == repaired);
}

// The first repair keeps the labels and the manifest of other states under other names, so the
// second one finds only the moved chunks. Both must decide in the same way about the catalog.
TEST_P(HistoryRepairTest, MovedChunksDecideBesideFilesThatGetOtherNames) {
  const auto other = fork();
  add_small(other, "v5", 2);
  const auto change = [&](const std::string& name, const std::string& gone, std::size_t bytes) {
    const auto repository = reopen(path_);
    const auto newest = must(repository->find_version(series_, "latest")).number;
    const auto number = must(repository->clone_version(series_, newest, name)).number;
    {
      const auto version = must(repository->writer(series_));
      if (!gone.empty()) must(version->unlink(kRootIno, gone));
      write_file(*version, kRootIno, "new in " + name, noise(bytes, bytes));
    }
    must(repository->seal(series_, number, ""));
  };
  change("v5", "", 400'000);
  ArrangeSettings settings;
  settings.window = 1;
  settings.policy = ArrangePolicyKind::kTiered;
  must(reopen(path_)->set_arrange_settings(settings));
  must(reopen(path_)->arrange(series_, {}));
  change("v6", "", 60'000);
  change("v7", "new in v6", 100);
  const auto before = fork();
  must(reopen(path_)->arrange(series_, {}));
  fs::remove_all(path_ + "/catalog");
  fs::copy(before + "/catalog", path_ + "/catalog", fs::copy_options::recursive);
  take(other, "manifests/00000005.man");

  EXPECT_EQ(code_of(plan(false)), ErrorCode::kInvalid);
  const auto report = must(must(plan(true))->execute({}));
  EXPECT_EQ(report.old_catalog, path_ + "/catalog.mixed-1");
  const auto repaired = bytes();
  const auto again = must(must(plan(true))->execute({}));
  EXPECT_EQ(again.old_catalog, "");
  EXPECT_TRUE(bytes() == repaired);
  const auto repository = reopen(path_);
  const auto newest = must(repository->find_version(series_, "v7")).number;
  const auto reader = must(repository->reader(series_, newest));
  EXPECT_TRUE(read_sealed(*reader, "new in v7") == noise(100, 100));
}

}  // namespace
}  // namespace varve::test
