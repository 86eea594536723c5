// SPDX-License-Identifier: Apache-2.0
// Tests the promises of a segment store in a folder beyond the contract: names, and corrections
// that cannot be swapped in.
#include "store/folder_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/coding.h"
#include "io/memory_file_system.h"
#include "support/faulty_file_system.h"

namespace varve::store {
namespace {

constexpr SegmentNumber kVolume = as_volume(SegmentNumber{0x1a});

class FolderStoreTest : public testing::Test {
 protected:
  FolderStoreTest() : files_(io::make_memory_file_system()), store_(files_, "s") {
    EXPECT_TRUE(store_.prepare());
  }
  void write(const std::string& path, const std::string& text) {
    const auto file = files_.open(path, io::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write_at(0, base::as_bytes(text)));
  }
  std::string read(const std::string& path) {
    const auto text = files_.read_file(path, 1U << 20);
    return text ? *text : "missing";
  }

  test::FaultyFileSystem files_;
  FolderStore store_;
};

TEST_F(FolderStoreTest, FilesHaveTheNamesOfTheFormat) {
  EXPECT_EQ(store_.path(SegmentNumber{0x1a}), "s/active/0000001a.seg");
  EXPECT_EQ(store_.path(kVolume), "s/volumes/0000001a.vol");
  EXPECT_EQ(store_.path(GroupNumber{0x1a}), "s/parity/0000001a.par");
}

TEST_F(FolderStoreTest, OnlyKnownNamesAreListedOrRemoved) {
  write("s/volumes/0000001a.vol", "x");
  write("s/volumes/0000001a.vol.tmp", "x");
  write("s/volumes/notes.txt", "x");
  write("s/volumes/notes.tmp", "x");
  EXPECT_EQ(*store_.list(StoredKind::kVolumes), std::vector<StoredFile>{kVolume});
  ASSERT_TRUE(store_.remove_unfinished(StoredKind::kVolumes));
  EXPECT_EQ(read("s/volumes/0000001a.vol.tmp"), "missing");
  EXPECT_EQ(read("s/volumes/notes.tmp"), "x");
}

TEST_F(FolderStoreTest, AnOpenFileIsReadAsItWasBeforeTheCorrection) {
  write("s/volumes/0000001a.vol", "damaged");
  const auto before = *store_.open(kVolume, ReadMode::kCached);
  ASSERT_TRUE(store_.correct(kVolume, {{0, std::vector<std::byte>(3, std::byte{'x'})}}));
  std::vector<std::byte> bytes(7);
  ASSERT_TRUE(before->read_at(0, bytes));
  EXPECT_EQ(base::as_text(bytes), "damaged") << "the file was overwritten";
  EXPECT_EQ(read("s/volumes/0000001a.vol"), "xxxaged");
}

// A copy would lose bytes that only cannot be read now.
TEST_F(FolderStoreTest, AFileThatCannotBeCopiedIsCorrectedInPlace) {
  write("s/volumes/0000001a.vol", "damaged");
  const auto before = *store_.open(kVolume, ReadMode::kCached);
  files_.faults.reads_fail = true;
  ASSERT_TRUE(store_.correct(kVolume, {{0, std::vector<std::byte>(3, std::byte{'x'})}}));
  files_.faults.reads_fail = false;
  EXPECT_EQ(read("s/volumes/0000001a.vol"), "xxxaged");
  EXPECT_EQ(read("s/volumes/0000001a.vol.tmp"), "missing");
}

}  // namespace
}  // namespace varve::store
