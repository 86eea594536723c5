// SPDX-License-Identifier: Apache-2.0
// Tests the repair of folders with files of two histories of one repository.
#include <algorithm>
#include <string>

#include "history_repair_fixture.h"

namespace varve::test {
namespace {

TEST_P(HistoryRepairTest, SoundManifestOfAnotherHistoryStopsARepair) {
  const auto other = fork();
  add_small(path_, "v5", 1);
  add_small(other, "v5", 2);
  take(other, "manifests");
  const auto before = bytes();
  const auto stopped = plan(false);
  ASSERT_EQ(code_of(stopped), ErrorCode::kInvalid);
  EXPECT_NE(stopped.error().message().find("s/v5"), std::string::npos);
  EXPECT_NE(stopped.error().message().find("Complete that copy"), std::string::npos);
  EXPECT_EQ(bytes(), before);

  const auto skipped = must(must(plan(true))->execute({}));
  EXPECT_TRUE(names(skipped.problems, "s/v5 of another history"));
  EXPECT_TRUE(fs::exists(in_series("manifests/00000005.man.damaged-1")));
  contents_["v5"] = {{"new", noise(1500, 1)}};
  reopen(path_);
  const auto again = must(plan(false));
  EXPECT_TRUE(again->steps().empty());
  EXPECT_TRUE(names(again->left_out(), "00000005.man.damaged-1"));
}

TEST_P(HistoryRepairTest, CatalogOfAnotherHistoryThanTheDataIsReplaced) {
  const auto other = fork();
  add_small(path_, "v5", 1);
  add_small(other, "v5", 2);
  for (const auto* const name : {"manifests", "active", "volumes"}) take(other, name);
  EXPECT_EQ(code_of(plan(false)), ErrorCode::kInvalid);
  const auto report = must(must(plan(true))->execute({}));
  EXPECT_TRUE(names(report.problems, "s/v5"));
  EXPECT_EQ(report.old_catalog, path_ + "/catalog.mixed-1");
  EXPECT_TRUE(fs::exists(in_series("labels.damaged-1")));
  const auto repository = reopen(path_);
  const auto info = must(repository->find_version(series_, "v5"));
  EXPECT_TRUE(read_sealed(*must(repository->reader(series_, info.number)), "new") ==
              noise(1500, 2));
}

// Both sides count with their bytes on the disk: compression must not make the data of one side
// look smaller than that of the other one.
TEST_P(HistoryRepairTest, CompressedDataOfTheOtherHistoryCountsAsMuchAsOwnData) {
  const auto add_text = [&](const std::string& path, const std::string& name, int lines) {
    const auto repository = reopen(path);
    const auto number = must(repository->open_version(series_, name, folder())).number;
    std::string text;
    for (int line = 0; line < lines; ++line) {
      text += name + ": line " + std::to_string(line * 7919 % lines) + " of a text\n";
    }
    write_file(*must(repository->writer(series_)), kRootIno, "text", text);
    must(repository->seal(series_, number, ""));
  };
  const auto other = fork();
  add_text(path_, "v5", 4000);
  add_small(other, "v5", 2);
  for (const auto* const name : {"v6", "v7", "v8", "v9"}) add_text(other, name, 4000);
  for (const auto* const name : {"labels", "manifests"}) take(other, name);
  for (const auto* const name : {"active", "volumes"}) take_missing(other, name);
  const auto report = must(must(plan(true))->execute({}));
  EXPECT_EQ(report.old_catalog, path_ + "/catalog.mixed-1");
}

// A crash between a deletion and the update of the labels leaves the same files as a newer catalog.
TEST_P(HistoryRepairTest, VersionsThatOnlyOlderLabelsListAreNamed) {
  const auto other = fork();
  {
    const auto repository = reopen(path_);
    const auto number = must(repository->find_version(series_, "v2")).number;
    must(repository->delete_versions(series_, {number}));
  }
  take(other, "labels");
  const auto planned = must(plan(false));
  ASSERT_FALSE(planned->steps().empty());
  EXPECT_TRUE(std::ranges::any_of(planned->steps(), [](const RepairStep& step) {
    return step.what.find("list s/v2, which count as deleted") != std::string::npos;
  }));
}

// The labels have a lower stamp than the catalog, and a version unknown to the catalog.
TEST_P(HistoryRepairTest, OlderLabelsWithMoreVersionsStopARepair) {
  const auto other = fork();
  add_small(other, "v5", 2);
  {
    const auto repository = reopen(path_);
    for (int i = 0; i < 40; ++i) {
      must(repository->set_arrange_settings(must(repository->arrange_settings())));
    }
  }
  for (const auto* const name : {"labels", "manifests"}) take(other, name);
  const auto before = bytes();
  EXPECT_EQ(code_of(plan(false)), ErrorCode::kInvalid);
  EXPECT_EQ(bytes(), before);
  const auto report = must(must(plan(true))->execute({}));
  EXPECT_TRUE(names(report.problems, "s/v5") || names(report.problems, "s/version 5"));
  expect_whole({"v1", "v2", "v3", "v4"});
}

// A copy of a newer state over an older one was interrupted after its labels.
TEST_P(HistoryRepairTest, LabelsOfALaterStateWithoutItsManifestsStopARepair) {
  const auto other = fork();
  must(reopen(other)->delete_versions(series_, {VersionNumber{2}}));
  add_small(other, "v5", 1);
  take(other, "labels");
  const auto before = bytes();
  const auto stopped = must(plan(false))->execute({});
  ASSERT_EQ(code_of(stopped), ErrorCode::kInvalid);
  EXPECT_NE(stopped.error().message().find("s/v5"), std::string::npos);
  EXPECT_NE(stopped.error().message().find("Complete that copy"), std::string::npos);
  EXPECT_EQ(bytes(), before);

  const auto skipped = must(must(plan(true))->execute({}));
  EXPECT_TRUE(names(skipped.problems, "s/v5 of a later state"));
  EXPECT_TRUE(names(skipped.notes, "catalog stays"));
  EXPECT_TRUE(fs::exists(in_series("labels.damaged-1")));
  EXPECT_EQ(skipped.old_catalog, "");
  expect_whole({"v1", "v2", "v3", "v4"});
  repository_.reset();
  const auto again = must(plan(false));
  EXPECT_TRUE(again->steps().empty());
  EXPECT_TRUE(names(again->left_out(), "labels.damaged-1"));
}

TEST_P(HistoryRepairTest, NamesAndLocksOfALaterStateThatIsLeftOutAreTold) {
  const auto other = fork();
  {
    const auto repository = reopen(other);
    must(repository->rename_version(series_, VersionNumber{1}, "first"));
    must(repository->lock_version(series_, VersionNumber{3}, {4'000'000'000, 0}));
  }
  add_small(other, "v5", 1);
  take(other, "labels");
  const auto report = must(must(plan(true))->execute({}));
  EXPECT_TRUE(names(report.notes, "s/v1 of the catalog has the name s/first in the later state"));
  EXPECT_TRUE(names(report.problems, "s/v3: in the later state, it is locked until "));
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(HistoryRepairTest, RebuildFromOlderFilesKeepsLocksAndNamesRenamedVersions) {
  const auto older = fork();
  {
    const auto repository = reopen(path_);
    must(repository->rename_version(series_, VersionNumber{1}, "first"));
    must(repository->lock_version(series_, VersionNumber{3}, {4'000'000'000, 0}));
  }
  for (const auto* const name : {"labels", "manifests"}) take(older, name);
  RepairOptions options;
  options.rebuild_catalog = true;
  const auto report = repair(options);
  EXPECT_TRUE(names(report.notes, "s/first of the old catalog has the name s/v1 now"));
  const auto locks = must(reopen(path_)->version_locks(series_));
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_EQ(locks[0].number, VersionNumber{3});
  EXPECT_EQ(locks[0].locked_until, (Timestamp{4'000'000'000, 0}));
}

TEST_P(HistoryRepairTest, LaterStateWithAWholeVersionReplacesTheCatalogIfMixedFilesAreSkipped) {
  const auto other = fork();
  add_small(other, "v5", 1);
  add_small(other, "v6", 2);
  for (const auto* const name : {"active", "volumes", "labels", "manifests"}) take(other, name);
  fs::remove(in_series("manifests/00000005.man"));
  EXPECT_EQ(code_of(must(plan(false))->execute({})), ErrorCode::kInvalid);
  const auto report = must(must(plan(true))->execute({}));
  EXPECT_EQ(report.old_catalog, path_ + "/catalog.damaged-1");
  EXPECT_TRUE(names(report.problems, "s/v5: the tree after entry 0: lost"));
  const auto repository = reopen(path_);
  const auto info = must(repository->find_version(series_, "v6"));
  EXPECT_TRUE(read_sealed(*must(repository->reader(series_, info.number)), "new") ==
              noise(1500, 2));
}

TEST_P(HistoryRepairTest, ManifestsOfALaterStateWithoutItsDataStopARepair) {
  const auto other = fork();
  add_small(other, "v5", 1);
  for (const auto* const name : {"labels", "manifests"}) take(other, name);
  const auto before = bytes();
  const auto stopped = must(plan(false))->execute({});
  ASSERT_EQ(code_of(stopped), ErrorCode::kInvalid);
  EXPECT_NE(stopped.error().message().find("new chunks are missing"), std::string::npos);
  EXPECT_EQ(bytes(), before);
}

// The labels need no missing file, so the labels may be right.
TEST_P(HistoryRepairTest, WholeVersionOfTheCatalogStaysWhereLaterLabelsDoNotListIt) {
  const auto other = fork();
  must(reopen(other)->delete_versions(series_, {VersionNumber{2}}));
  take(other, "labels");
  const auto report = must(must(plan(false))->execute({}));
  EXPECT_TRUE(report.problems.empty());
  EXPECT_TRUE(names(report.notes, "s/v2: the labels of the series do not list this version"));
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(HistoryRepairTest, OlderCatalogBesideALaterStateIsReplaced) {
  const auto other = fork();
  add_small(other, "v5", 1);
  const auto old = directory_.path() + "/old";
  fs::copy(path_ + "/catalog", old, fs::copy_options::recursive);
  fs::remove_all(path_);
  fs::rename(other, path_);
  // The oldest version alone has some of its chunks, so the deletion frees data.
  must(reopen(path_)->delete_versions(series_, {VersionNumber{1}}));
  fs::remove_all(path_ + "/catalog");
  fs::rename(old, path_ + "/catalog");
  const auto report = must(must(plan(false))->execute({}));
  EXPECT_TRUE(report.problems.empty());
  EXPECT_TRUE(names(report.notes, "s/v1 "));
  const auto repository = reopen(path_);
  EXPECT_EQ(code_of(repository->find_version(series_, "v1")), ErrorCode::kNotFound);
  const auto info = must(repository->find_version(series_, "v5"));
  EXPECT_TRUE(read_sealed(*must(repository->reader(series_, info.number)), "new") ==
              noise(1500, 1));
}

TEST_P(HistoryRepairTest, LostManifestWithoutACatalogIsNamedByEachRepairAndRebuiltOnce) {
  repository_.reset();
  const auto manifest = in_series("manifests/00000002.man");
  fs::rename(manifest, directory_.path() + "/kept");
  lose_catalog();
  EXPECT_TRUE(names(repair().problems, "s/v2: the tree after entry 0: lost"));
  reopen(path_);
  const auto before = bytes();
  {
    const auto again = must(plan(false));
    EXPECT_TRUE(again->steps().empty());
    ASSERT_FALSE(again->lost_parts().empty());
    EXPECT_TRUE(names(again->lost_parts(), "s/v2: the tree after entry 0: lost"));
    EXPECT_TRUE(names(again->lost_parts(), "`varve rm`"));
  }
  EXPECT_EQ(bytes(), before);

  // The manifest has all pages.
  fs::remove(manifest);
  fs::rename(directory_.path() + "/kept", manifest);
  {
    const auto planned = must(plan(false));
    ASSERT_EQ(planned->steps().size(), 1U);
    EXPECT_EQ(planned->steps()[0].kind, RepairStep::Kind::kCatalog);
    EXPECT_TRUE(planned->lost_parts().empty());
    EXPECT_TRUE(must(planned->execute({})).problems.empty());
  }
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(HistoryRepairTest, DeletionOfAVersionEndsItsLostParts) {
  repository_.reset();
  add_small(path_, "v5", 1);
  fs::remove(in_series("manifests/00000005.man"));
  lose_catalog();
  EXPECT_TRUE(names(repair().problems, "s/v5: the tree after entry 0: lost"));
  EXPECT_FALSE(must(plan(false))->lost_parts().empty());
  must(reopen(path_)->delete_versions(series_, {VersionNumber{5}}));
  const auto planned = must(plan(false));
  EXPECT_TRUE(planned->steps().empty() && planned->lost_parts().empty());
}

// A catalog without a manifest's pages has lost the pages. The containers left out by an earlier
// repair, of the second history, do not matter then.
TEST_P(HistoryRepairTest, LostPartsAfterAMixtureStopNoRepair) {
  const auto other = fork();
  add_small(path_, "v5", 1);
  add_small(other, "v5", 2);
  add_small(other, "v6", 3);
  for (const auto& entry : fs::directory_iterator(other + "/series/00000001/active")) {
    const auto target = in_series("active/" + entry.path().filename().string());
    if (!fs::exists(target)) fs::copy(entry.path(), target);
  }
  take(other, "labels");
  fs::remove(in_series("manifests/00000002.man"));
  lose_catalog();
  EXPECT_EQ(code_of(must(plan(false))->execute({})), ErrorCode::kInvalid);
  must(must(plan(true))->execute({}));
  reopen(path_);
  for (int i = 0; i < 2; ++i) {
    const auto again = must(plan(false));
    EXPECT_TRUE(again->steps().empty());
    EXPECT_TRUE(names(again->lost_parts(), "s/v2: the tree after entry 0: lost"));
    EXPECT_TRUE(names(again->left_out(), "labels.damaged-1"));
  }
}

TEST_P(HistoryRepairTest, ContainerWhoseNumberAnotherOneHasIsNamed) {
  repository_.reset();
  for (const auto& entry : fs::directory_iterator(in_series("active"))) {
    fs::copy(entry.path(), in_series("active/000000ff.seg"));
    break;
  }
  lose_catalog();
  const auto report = must(must(plan(false))->execute({}));
  EXPECT_TRUE(report.problems.empty());
  EXPECT_TRUE(names(report.notes,
                    "000000ff.seg: the container at offset 0 has the number of "
                    "another container and is left out; no version needs it"));
  expect_whole({"v1", "v2", "v3", "v4"});
}

// The superblock is written only if the rebuild of the catalog does not stop.
TEST_P(HistoryRepairTest, StoppedRebuildLeavesTheFolderAsItWas) {
  const auto other = fork();
  add_small(path_, "v5", 1);
  add_small(other, "v5", 2);
  take(other, "manifests");
  lose_catalog();
  fs::remove(path_ + "/varve.repo");
  const auto before = bytes();
  const auto planned = must(plan(false));
  EXPECT_EQ(code_of(planned->execute({})), ErrorCode::kInvalid);
  EXPECT_EQ(bytes(), before);
}

// The labels of another state have deleted the version without a note, because the state has no
// manifest of the version.
TEST_P(HistoryRepairTest, RebuildKeepsWholeVersionsThatLabelsDoNotKnow) {
  const auto other = fork();
  {
    const auto repository = reopen(other);
    must(repository->delete_versions(series_, {VersionNumber{4}}));
  }
  take(other, "labels");
  lose_catalog();
  const auto report = must(must(plan(false))->execute({}));
  EXPECT_TRUE(names(report.notes, "s/v4: the labels of the series neither list this version"));
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(HistoryRepairTest, ParityWithoutACatalogLeavesSoundContainersOfAnotherHistory) {
  auto settings = must(repository_->arrange_settings());
  settings.parity_percent = 25;
  must(repository_->set_arrange_settings(settings));
  const auto other = fork();
  std::uint64_t seed = 0;
  for (const auto& path : {path_, other}) {
    add_small(path, "v5", ++seed);
    must(reopen(path)->arrange(series_, {}));
  }
  for (const auto* const name : {"active", "volumes", "manifests", "labels"}) take(other, name);
  lose_catalog();
  auto planned = must(plan(false));
  for (const auto& step : planned->steps()) EXPECT_NE(step.kind, RepairStep::Kind::kParity);
  EXPECT_EQ(must(planned->execute({})).containers_restored, 0U);
  planned.reset();
  const auto repository = reopen(path_);
  const auto info = must(repository->find_version(series_, "v5"));
  EXPECT_TRUE(read_sealed(*must(repository->reader(series_, info.number)), "new") ==
              noise(1500, 2));
}

INSTANTIATE_TEST_SUITE_P(Codecs, HistoryRepairTest, testing::Values(Codec::kZstd));

}  // namespace
}  // namespace varve::test
