// SPDX-License-Identifier: Apache-2.0
#include "store/repository_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/memory_file_system.h"

namespace varve::store {
namespace {

bool is_known(FolderKind kind, std::string_view name) { return known_name(kind, name).has_value(); }

TEST(RepositoryNames, OnlyExactFormsAreKnown) {
  EXPECT_TRUE(is_known(FolderKind::kRepository, "varve.repo"));
  EXPECT_TRUE(is_known(FolderKind::kRepository, "catalog.damaged-12"));
  EXPECT_TRUE(is_known(FolderKind::kRepository, "catalog.mixed-1"));
  EXPECT_TRUE(is_known(FolderKind::kSeries, "labels.damaged-1"));
  EXPECT_FALSE(is_known(FolderKind::kSeries, "labels.damaged-"));
  EXPECT_TRUE(is_known(FolderKind::kAllSeries, "0000001f"));
  EXPECT_TRUE(is_known(FolderKind::kSeries, "index-00000002.snap.tmp"));
  EXPECT_TRUE(is_known(FolderKind::kSeries, "index-00000002.run"));
  EXPECT_FALSE(is_known(FolderKind::kSeries, "index-00000002.run.tmp"));
  EXPECT_TRUE(is_known(FolderKind::kPool, "index-0000000a.run"));
  EXPECT_TRUE(is_known(FolderKind::kPool, "index-zero-0000000a.bins"));
  EXPECT_TRUE(is_known(FolderKind::kPool, "index-zero-0000000a.log"));
  EXPECT_TRUE(is_known(FolderKind::kActive, "0000000a.seg"));
  EXPECT_TRUE(is_known(FolderKind::kVolumes, "0000000a.vol"));
  EXPECT_TRUE(is_known(FolderKind::kManifests, "00000001.man"));
  EXPECT_TRUE(is_known(FolderKind::kParity, "00000001.par.tmp"));
  EXPECT_TRUE(is_known(FolderKind::kStaging, "00000001-00000002"));
  EXPECT_TRUE(is_known(FolderKind::kOpenVersion, "overlay.new"));
  EXPECT_TRUE(is_known(FolderKind::kStagedFiles, "1f-3"));

  EXPECT_FALSE(is_known(FolderKind::kRepository, "catalog.damaged-01"));
  EXPECT_FALSE(is_known(FolderKind::kRepository, "NOTES.txt"));
  EXPECT_FALSE(is_known(FolderKind::kAllSeries, "0000001F"));
  EXPECT_FALSE(is_known(FolderKind::kSeries, "index-2.snap"));
  EXPECT_FALSE(is_known(FolderKind::kSeries, "index-notes"));
  EXPECT_FALSE(is_known(FolderKind::kSeries, "index-zero-0000000a.log"));
  EXPECT_FALSE(is_known(FolderKind::kPool, "index-zero-notes.log"));
  EXPECT_FALSE(is_known(FolderKind::kActive, "8000000a.seg"));
  EXPECT_FALSE(is_known(FolderKind::kActive, "0000000a.vol"));
  EXPECT_FALSE(is_known(FolderKind::kActive, "0000000a.seg.bak"));
  EXPECT_FALSE(is_known(FolderKind::kManifests, "00000001.man.old"));
  EXPECT_FALSE(is_known(FolderKind::kParity, "notes.tmp"));
  EXPECT_FALSE(is_known(FolderKind::kStaging, "00000001-2"));
  EXPECT_FALSE(is_known(FolderKind::kStagedFiles, "01-3"));
  EXPECT_FALSE(is_known(FolderKind::kEnvironment, "data.mdb.orig"));
}

TEST(RepositoryNames, NamesRoundTrip) {
  const auto name = staging_name(SeriesId{7}, VersionNumber{0x1234});
  EXPECT_EQ(name, "00000007-00001234");
  const auto parsed = parse_staging_name(name);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->series, SeriesId{7});
  EXPECT_EQ(parsed->number, VersionNumber{0x1234});
  EXPECT_EQ(parse_snapshot_name("index-0000000a.snap"), VersionNumber{10});
  EXPECT_EQ(parse_snapshot_name("index-0000000a.snap.tmp"), std::nullopt);
  EXPECT_EQ(parse_index_run_name(index_run_name(10)), 10U);
  EXPECT_EQ(parse_index_run_name("index-0000000a.snap"), std::nullopt);
}

class RemoveFolder : public testing::Test {
 protected:
  void folder(const std::string& path) { ASSERT_TRUE(files_->make_directory(path).has_value()); }
  void file(const std::string& path) {
    ASSERT_TRUE(files_->open(path, io::OpenMode::kCreateNew).has_value());
  }
  std::vector<std::string> names(const std::string& path) { return *files_->list(path); }

  std::unique_ptr<io::FileSystem> files_ = io::make_memory_file_system();
};

TEST_F(RemoveFolder, TakesEverythingThatVarveMade) {
  for (const char* name : {"s", "s/overlay", "s/files"}) folder(name);
  for (const char* name : {"s/overlay/data.mdb", "s/overlay/lock.mdb", "s/files/1-1", "s/tails"}) {
    file(name);
  }
  ASSERT_TRUE(remove_folder(*files_, "s", FolderKind::kOpenVersion).has_value());
  EXPECT_FALSE(*files_->exists("s"));
  EXPECT_TRUE(remove_folder(*files_, "s", FolderKind::kOpenVersion).has_value());
}

TEST_F(RemoveFolder, KeepsUnknownFilesAndTheFoldersThatHoldThem) {
  for (const char* name : {"s", "s/active", "s/volumes", "s/mine"}) folder(name);
  for (const char* name : {"s/active/00000001.seg", "s/active/NOTES.txt", "s/volumes/00000001.vol",
                           "s/mine/photo", "s/labels"}) {
    file(name);
  }
  ASSERT_TRUE(remove_folder(*files_, "s", FolderKind::kSeries).has_value());
  EXPECT_EQ(names("s"), (std::vector<std::string>{"active", "mine"}));
  EXPECT_EQ(names("s/active"), std::vector<std::string>{"NOTES.txt"});
  EXPECT_EQ(names("s/mine"), std::vector<std::string>{"photo"});
}

}  // namespace
}  // namespace varve::store
