// SPDX-License-Identifier: Apache-2.0
// Checks each implementation against the promises of io::FileSystem.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/coding.h"
#include "io/file_system.h"
#include "io/memory_file_system.h"
#include "io/posix_file_system.h"

namespace varve::io {
namespace {

using base::as_bytes;

enum class Kind { kPosix, kRooted, kRootedByHand, kMemory };

std::string name_of(Kind kind) {
  constexpr std::array kNames{"Posix", "Rooted", "RootedByHand", "Memory"};
  return kNames.at(static_cast<std::size_t>(kind));
}

class FileSystemContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() != Kind::kMemory) {
      std::string path = testing::TempDir() + "/varve-contract-XXXXXX";
      ASSERT_NE(::mkdtemp(path.data()), nullptr);
      root_ = path;
      fs_ = make_posix_file_system();
      if (GetParam() != Kind::kPosix) {
        RootOptions options;
        options.walk_by_hand = GetParam() == Kind::kRootedByHand;
        auto rooted = open_root(path, options);
        ASSERT_TRUE(rooted.has_value());
        fs_ = std::move(*rooted);
      }
    } else {
      root_ = "/root";
      fs_ = make_memory_file_system();
      ASSERT_TRUE(fs_->make_directory(root_).has_value());
    }
  }
  void TearDown() override {
    if (GetParam() != Kind::kMemory) std::filesystem::remove_all(root_);
  }

  std::string path(const std::string& name) const { return root_ + "/" + name; }

  std::unique_ptr<File> open(const std::string& name, OpenMode mode = OpenMode::kReadWrite) {
    auto file = fs_->open(path(name), mode);
    EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().message());
    return file ? std::move(*file) : nullptr;
  }
  void make(const std::string& name, std::string_view text) {
    ASSERT_TRUE(open(name)->write_at(0, as_bytes(text)).has_value());
  }
  std::string content(const std::string& name) {
    auto text = fs_->read_file(path(name), 1U << 20);
    return text ? *text : "error: " + text.error().message();
  }

  std::string root_;
  std::unique_ptr<FileSystem> fs_;
};

template <typename T>
ErrorCode code_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value()) << "it worked";
  return result ? ErrorCode::kInterrupted : result.error().code();
}

struct alignas(kDirectAlignment) AlignedBlocks {
  std::array<std::byte, 4 * kDirectAlignment> bytes{};
};

TEST_P(FileSystemContract, MissingFileReturnsNotFound) {
  EXPECT_EQ(code_of(fs_->open(path("none"), OpenMode::kRead)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(fs_->open(path("none"), OpenMode::kReadDirect)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(fs_->open(path("none/f"), OpenMode::kReadWrite)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(fs_->remove(path("none"))), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(fs_->list(path("none"))), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(fs_->rename(path("none"), path("x"))), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(fs_->tree_bytes(path("none"))), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(fs_->read_file(path("none"), 10)), ErrorCode::kNotFound);
  EXPECT_FALSE(*fs_->exists(path("none")));
  EXPECT_FALSE(*fs_->exists(path("none/below")));
}

TEST_P(FileSystemContract, CreateNewRefusesAnExistingFile) {
  open("f", OpenMode::kCreateNew);
  EXPECT_EQ(code_of(fs_->open(path("f"), OpenMode::kCreateNew)), ErrorCode::kExists);
}

TEST_P(FileSystemContract, ReadGivesFewerBytesOnlyAtTheEnd) {
  make("f", "0123456789");
  auto file = open("f", OpenMode::kRead);
  std::array<std::byte, 8> out{};
  EXPECT_EQ(*file->read_at(0, out), 8U);
  EXPECT_EQ(base::as_text(out), "01234567");
  EXPECT_EQ(*file->read_at(6, out), 4U);
  EXPECT_EQ(base::as_text(std::span(out).first(4)), "6789");
  EXPECT_EQ(*file->read_at(10, out), 0U);
  EXPECT_EQ(*file->read_at(1000, out), 0U);
}

TEST_P(FileSystemContract, WriteThroughAReadOnlyFileFails) {
  make("f", "abc");
  for (const auto mode : {OpenMode::kRead, OpenMode::kReadPlanned}) {
    auto file = open("f", mode);
    EXPECT_FALSE(file->write_at(0, as_bytes("x")).has_value());
    EXPECT_FALSE(file->truncate(0).has_value());
  }
  EXPECT_EQ(content("f"), "abc");
}

TEST_P(FileSystemContract, AnnouncingReadsChangesNothing) {
  make("f", "0123456789");
  auto file = open("f", OpenMode::kReadPlanned);
  file->will_read(0, 10);
  file->will_read(5, ~std::uint64_t{0});
  file->will_read(1ULL << 40, 100);
  static_cast<void>(file->is_cached(0, 10));  // Either answer is right.
  EXPECT_FALSE(file->is_cached(1ULL << 40, 100));
  std::vector<std::byte> out(4);
  EXPECT_EQ(*file->read_at(6, out), 4U);
  EXPECT_EQ(base::as_text(out), "6789");
  EXPECT_EQ(code_of(fs_->open(path("none"), OpenMode::kReadPlanned)), ErrorCode::kNotFound);
}

TEST_P(FileSystemContract, WriteInTheMiddleLeavesTheRest) {
  make("f", "0123456789");
  ASSERT_TRUE(open("f")->write_at(3, as_bytes("abc")).has_value());
  EXPECT_EQ(content("f"), "012abc6789");
}

TEST_P(FileSystemContract, LargeWriteAcrossPagesReadsBack) {
  std::string text;
  for (int i = 0; text.size() < 300000; ++i) text += std::to_string(i) + ' ';
  ASSERT_TRUE(open("f")->write_at(4095, as_bytes(text)).has_value());
  EXPECT_EQ(content("f"), std::string(4095, '\0') + text);
}

TEST_P(FileSystemContract, TruncateCutsAndGrowsWithZeros) {
  make("f", "0123456789");
  auto file = open("f");
  ASSERT_TRUE(file->truncate(4).has_value());
  EXPECT_EQ(*file->size(), 4U);
  ASSERT_TRUE(file->truncate(6).has_value());
  EXPECT_EQ(content("f"), std::string("0123\0\0", 6));
  ASSERT_TRUE(file->sync().has_value());
}

TEST_P(FileSystemContract, SeekFindsDataAndHoles) {
  constexpr std::uint64_t kMiB = 1U << 20;
  auto file = open("f");
  ASSERT_TRUE(file->truncate(4 * kMiB).has_value());
  ASSERT_TRUE(file->write_at(2 * kMiB, as_bytes(std::string(kMiB, 'x'))).has_value());
  const auto data = file->seek_data(0);
  ASSERT_TRUE(data.has_value());
  // A file system without holes may call everything data, but never data a hole.
  EXPECT_LE(*data, 2 * kMiB);
  EXPECT_EQ(*file->seek_data(2 * kMiB + 5), 2 * kMiB + 5);
  EXPECT_GE(*file->seek_hole(2 * kMiB), 3 * kMiB);
  EXPECT_LE(*file->seek_hole(2 * kMiB), 4 * kMiB);
  EXPECT_EQ(code_of(file->seek_data(4 * kMiB)), ErrorCode::kPastEnd);
  EXPECT_EQ(code_of(file->seek_hole(4 * kMiB)), ErrorCode::kPastEnd);
}

TEST_P(FileSystemContract, DirectAccessWritesAndReadsWholeBlocks) {
  auto blocks = std::make_unique<AlignedBlocks>();
  std::fill(blocks->bytes.begin(), blocks->bytes.end(), std::byte{7});
  {
    auto file = open("f", OpenMode::kWriteDirect);
    ASSERT_TRUE(file->write_at(kDirectAlignment, blocks->bytes).has_value());
    ASSERT_TRUE(file->sync().has_value());
  }
  auto file = open("f", OpenMode::kReadDirect);
  EXPECT_EQ(*file->size(), 5 * kDirectAlignment);
  EXPECT_EQ(*file->read_at(0, blocks->bytes), blocks->bytes.size());
  EXPECT_EQ(blocks->bytes[kDirectAlignment - 1], std::byte{0});
  EXPECT_EQ(blocks->bytes[kDirectAlignment], std::byte{7});
  EXPECT_EQ(*file->read_at(4 * kDirectAlignment, blocks->bytes), kDirectAlignment);
}

TEST_P(FileSystemContract, DirectReadStopsAtAnOddEnd) {
  make("f", std::string(kDirectAlignment + 10, 'x'));
  auto blocks = std::make_unique<AlignedBlocks>();
  auto file = open("f", OpenMode::kReadDirect);
  EXPECT_EQ(*file->read_at(0, blocks->bytes), kDirectAlignment + 10);
}

TEST_P(FileSystemContract, MisalignedDirectAccessReturnsInvalid) {
  auto blocks = std::make_unique<AlignedBlocks>();
  const auto memory = std::span(blocks->bytes);
  auto file = open("f", OpenMode::kWriteDirect);
  EXPECT_EQ(code_of(file->write_at(1, memory)), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(file->write_at(0, memory.first(100))), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(file->write_at(0, memory.subspan(1, kDirectAlignment))), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(file->read_at(0, memory.first(100))), ErrorCode::kInvalid);
  EXPECT_EQ(*file->size(), 0U);
}

TEST_P(FileSystemContract, MakeDirectoryTakesAnExistingOne) {
  ASSERT_TRUE(fs_->make_directory(path("d")).has_value());
  EXPECT_TRUE(fs_->make_directory(path("d")).has_value());
  make("f", "");
  EXPECT_EQ(code_of(fs_->make_directory(path("f"))), ErrorCode::kExists);
  EXPECT_EQ(code_of(fs_->make_directory(path("no/d"))), ErrorCode::kNotFound);
}

TEST_P(FileSystemContract, ListIsSortedAndOfOneLevel) {
  make("b", "");
  make("a", "");
  ASSERT_TRUE(fs_->make_directory(path("d")).has_value());
  make("d/inside", "");
  EXPECT_EQ(*fs_->list(root_), (std::vector<std::string>{"a", "b", "d"}));
  EXPECT_EQ(*fs_->list(path("d")), std::vector<std::string>{"inside"});
  EXPECT_EQ(code_of(fs_->list(path("a"))), ErrorCode::kNotDirectory);
}

TEST_P(FileSystemContract, RemoveTakesFilesAndEmptyDirectories) {
  ASSERT_TRUE(fs_->make_directory(path("d")).has_value());
  make("d/f", "x");
  EXPECT_EQ(code_of(fs_->remove(path("d"))), ErrorCode::kNotEmpty);
  EXPECT_TRUE(fs_->remove(path("d/f")).has_value());
  EXPECT_TRUE(fs_->remove(path("d")).has_value());
  EXPECT_FALSE(*fs_->exists(path("d")));
}

TEST_P(FileSystemContract, OpenFileOutlivesItsName) {
  make("f", "abc");
  auto file = open("f", OpenMode::kRead);
  ASSERT_TRUE(fs_->remove(path("f")).has_value());
  std::array<std::byte, 3> out{};
  EXPECT_EQ(*file->read_at(0, out), 3U);
  EXPECT_EQ(base::as_text(out), "abc");
}

TEST_P(FileSystemContract, RenameReplacesAFile) {
  make("new", "new");
  make("old", "old");
  ASSERT_TRUE(fs_->rename(path("new"), path("old")).has_value());
  EXPECT_EQ(content("old"), "new");
  EXPECT_FALSE(*fs_->exists(path("new")));
  ASSERT_TRUE(fs_->sync_directory(root_).has_value());
}

TEST_P(FileSystemContract, RenameMovesADirectoryWithWhatIsInIt) {
  ASSERT_TRUE(fs_->make_directory(path("d")).has_value());
  make("d/f", "abc");
  ASSERT_TRUE(fs_->rename(path("d"), path("e")).has_value());
  EXPECT_EQ(content("e/f"), "abc");
  EXPECT_FALSE(*fs_->exists(path("d/f")));
}

TEST_P(FileSystemContract, RenameOntoAFullDirectoryReturnsNotEmpty) {
  ASSERT_TRUE(fs_->make_directory(path("d")).has_value());
  ASSERT_TRUE(fs_->make_directory(path("e")).has_value());
  make("e/f", "x");
  const auto code = code_of(fs_->rename(path("d"), path("e")));
  EXPECT_TRUE(code == ErrorCode::kNotEmpty || code == ErrorCode::kExists);
}

TEST_P(FileSystemContract, TreeBytesSumTheFiles) {
  ASSERT_TRUE(fs_->make_directory(path("d")).has_value());
  ASSERT_TRUE(fs_->make_directory(path("d/e")).has_value());
  make("d/f", std::string(1000, 'x'));
  make("d/e/g", std::string(234, 'x'));
  make("other", "not counted");
  EXPECT_EQ(*fs_->tree_bytes(path("d")), 1234U);
  EXPECT_EQ(*fs_->tree_bytes(path("d/f")), 1000U);
}

TEST_P(FileSystemContract, SpaceHasBlocks) {
  const auto space = fs_->space(root_);
  ASSERT_TRUE(space.has_value());
  EXPECT_GT(space->block_bytes, 0U);
  EXPECT_GE(space->blocks, space->blocks_free);
  EXPECT_GE(space->blocks_free, space->blocks_available);
}

TEST_P(FileSystemContract, SecondLockReturnsLockedUntilTheFirstGoes) {
  auto first = fs_->lock(path("lock"));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(code_of(fs_->lock(path("lock"))), ErrorCode::kLocked);
  first->reset();
  EXPECT_TRUE(fs_->lock(path("lock")).has_value());
}

TEST_P(FileSystemContract, ReadFileRefusesMoreThanItsBound) {
  make("f", "12345");
  EXPECT_EQ(*fs_->read_file(path("f"), 5), "12345");
  EXPECT_EQ(code_of(fs_->read_file(path("f"), 4)), ErrorCode::kTooLarge);
}

TEST_P(FileSystemContract, AtomicWriteReplacesAndLeavesNothingBeside) {
  make("f.tmp", "a longer left-over of a crash");
  ASSERT_TRUE(fs_->write_file_atomically(root_, "f", as_bytes("one")).has_value());
  ASSERT_TRUE(fs_->write_file_atomically(root_, "f", as_bytes("two")).has_value());
  EXPECT_EQ(content("f"), "two");
  EXPECT_EQ(*fs_->list(root_), std::vector<std::string>{"f"});
}

INSTANTIATE_TEST_SUITE_P(Every, FileSystemContract,
                         testing::Values(Kind::kPosix, Kind::kRooted, Kind::kRootedByHand,
                                         Kind::kMemory),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
}  // namespace varve::io
