// SPDX-License-Identifier: Apache-2.0
#include "store/sealed_places.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "io/memory_file_system.h"
#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::store {
namespace {

using test::must;

std::optional<SealedKind> kind_of(const std::string& path) {
  const auto place = sealed_place("/repo", "/repo/" + path);
  return place ? std::optional(static_cast<SealedKind>(place->kind)) : std::nullopt;
}

// Every file of FORMAT.md §1 with its kind.
const std::map<std::string, SealedKind> kSealed{
    {"series/0000000a/manifests/00000007.man", SealedKind::kManifest},
    {"series/0000000a/labels", SealedKind::kLabels},
    {"series/0000000a/index-00000007.run", SealedKind::kIndexRun},
    {"series/0000000a/index-00000007.snap", SealedKind::kIndexSnapshot},
    {"series/0000000a/sources-00000007.dat", SealedKind::kSources},
    {"series/0000000a/beside", SealedKind::kBeside},
    {"pool/aliases-00000007.als", SealedKind::kAliases},
    {"pool/sort-00000007.tmp", SealedKind::kSorting},
    {"pool/index.snap", SealedKind::kIndexSnapshot},
    {"pool/index-00000007.run", SealedKind::kIndexRun},
    {"pool/index-zero-00000007.bins", SealedKind::kZeroBins},
    {"pool/index-zero-00000007.log", SealedKind::kZeroLog},
    {"scrub", SealedKind::kScrub},
    {"checked", SealedKind::kChecked},
    {"staging/0000000a-00000007/tails", SealedKind::kTails},
};

TEST(SealedPlaces, EveryFileHasItsKind) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> places;
  for (const auto& [path, kind] : kSealed) {
    EXPECT_EQ(kind_of(path), kind) << path;
    const auto place = *sealed_place("/repo", "/repo/" + path);
    EXPECT_TRUE(places.insert({place.kind, place.store, place.number}).second) << path;
    // A repository may be named with slashes behind it.
    EXPECT_EQ(sealed_place("/repo/", "/repo//" + path), place);
  }
}

TEST(SealedPlaces, TemporaryFilesHaveThePlaceOfTheFinalOnes) {
  for (const char* path : {"series/0000000a/manifests/00000007.man", "series/0000000a/labels",
                           "series/0000000a/index-00000007.snap",
                           "series/0000000a/sources-00000007.dat", "series/0000000a/beside",
                           "pool/aliases-00000007.als", "pool/index.snap", "scrub", "checked"}) {
    const auto full = std::string("/repo/") + path;
    EXPECT_EQ(sealed_place("/repo", full), sealed_place("/repo", full + ".tmp")) << path;
  }
  EXPECT_EQ(sealed_place("/repo", "/repo/series/0000000a/beside.damaged-1"),
            sealed_place("/repo", "/repo/series/0000000a/beside"));
  EXPECT_EQ(sealed_place("/repo", "/repo/series/0000000a/labels.damaged-1"),
            sealed_place("/repo", "/repo/series/0000000a/labels"));
}

TEST(SealedPlaces, OtherSealersAndClearFilesAreLeftAlone) {
  for (const char* path :
       {"varve.repo", "varve.repo.tmp", "lock", "reserve", "settled", "control.sock",
        "catalog/data.mdb", "catalog/data.mdb.tmp", "catalog.new/lock.mdb",
        "series/0000000a/active/00000001.seg", "series/0000000a/volumes/00000001.vol.tmp",
        "series/0000000a/parity/00000001.par", "pool/active/00000001.seg",
        "pool/parity/00000001.par", "staging/0000000a-00000007/overlay/data.mdb",
        "staging/0000000a-00000007/files/1f-3"}) {
    EXPECT_EQ(kind_of(path), std::nullopt) << path;
  }
  EXPECT_EQ(sealed_place("/repo", "/repository/scrub"), std::nullopt);
}

TEST(SealedPlaces, UnknownFilesAreSealedToo) {
  EXPECT_EQ(kind_of("series/0000000a/index-new"), SealedKind::kOther);
  EXPECT_EQ(kind_of("series/0000000a/manifests/list"), SealedKind::kOther);
  EXPECT_EQ(kind_of("pool/filters"), SealedKind::kOther);
}

class SealFiles : public testing::Test {
 protected:
  SealFiles() {
    auto disk = io::make_memory_file_system();
    disk_ = disk.get();
    files_ = seal_files(std::move(disk), test::random_keys(), "/repo");
    for (const char* folder :
         {"/repo", "/repo/series", "/repo/series/0000000a", "/repo/series/0000000a/manifests",
          "/repo/pool", "/repo/staging", "/repo/staging/0000000a-00000007", "/repo/catalog"}) {
      must(files_->make_directory(folder));
    }
  }
  io::FileSystem* disk_ = nullptr;
  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(SealFiles, NoTextIsOnTheDiskAndAllComesBack) {
  const std::string canary = "canary: the name of a file";
  for (const auto& [path, kind] : kSealed) {
    const auto full = "/repo/" + path;
    const auto text = test::noise(5000, 1) + canary;
    must(must(files_->open(full, io::OpenMode::kReadWrite))->write_at(0, base::as_bytes(text)));
    EXPECT_EQ(must(files_->read_file(full, 10000)), text);
    const auto raw = must(disk_->read_file(full, 10000));
    EXPECT_EQ(raw.find("canary"), std::string::npos) << path;
    EXPECT_EQ(must(files_->tree_bytes(full)), raw.size());
    EXPECT_EQ(files_->stored_bytes(full, text.size()), raw.size());
  }
  must(must(files_->open("/repo/varve.repo", io::OpenMode::kReadWrite))
           ->write_at(0, base::as_bytes(canary)));
  EXPECT_EQ(must(disk_->read_file("/repo/varve.repo", 1000)), canary);
  EXPECT_EQ(files_->stored_bytes("/repo/varve.repo", 10), 10U);
}

TEST_F(SealFiles, AFileOpensOnlyUnderItsOwnName) {
  const auto bytes = base::as_bytes("text");
  must(files_->write_file_atomically("/repo/series/0000000a", "labels", bytes));
  EXPECT_EQ(must(files_->read_file("/repo/series/0000000a/labels", 100)), "text");
  // An attacker copies the file to other places.
  for (const auto& [path, kind] : kSealed) {
    if (kind == SealedKind::kLabels) continue;
    const auto raw = must(disk_->read_file("/repo/series/0000000a/labels", 1000));
    must(must(disk_->open("/repo/" + path, io::OpenMode::kReadWrite))
             ->write_at(0, base::as_bytes(raw)));
    const auto read = files_->read_file("/repo/" + path, 100);
    ASSERT_FALSE(read.has_value()) << path;
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(files_->rename("/repo/series/0000000a/labels", "/repo/scrub").error().code(),
            ErrorCode::kInvalid);
  EXPECT_EQ(files_->descriptor("/repo/scrub", io::OpenMode::kRead).error().code(),
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace varve::store
