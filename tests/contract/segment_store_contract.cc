// SPDX-License-Identifier: Apache-2.0
// Checks each implementation against the promises of store::SegmentStore.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "io/memory_file_system.h"
#include "store/folder_store.h"
#include "store/sealed_places.h"
#include "support/memory_segment_store.h"
#include "support/sealed_memory.h"

namespace varve::store {
namespace {

constexpr SegmentNumber kSegment{3};
constexpr SegmentNumber kVolume = as_volume(SegmentNumber{4});
constexpr GroupNumber kGroup{5};
constexpr std::size_t kBlock = 4096;

enum class Kind { kFolder, kFolderOfEncrypted, kMemory };

std::string name_of(Kind kind) {
  constexpr std::array kNames{"Folder", "FolderOfEncrypted", "Memory"};
  return kNames.at(static_cast<std::size_t>(kind));
}

class SegmentStoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() != Kind::kMemory) {
      files_ = io::make_memory_file_system();
      if (GetParam() == Kind::kFolderOfEncrypted) {
        files_ = seal_files(std::move(files_), test::random_keys(), "r");
      }
      for (const char* path : {"r", "r/series"}) ASSERT_TRUE(files_->make_directory(path));
      store_ = std::make_unique<FolderStore>(*files_, "r/series/00000001");
    } else {
      store_ = std::make_unique<test::MemorySegmentStore>();
    }
    ASSERT_TRUE(store_->prepare());
  }

  static std::span<std::byte> fill(base::AlignedBuffer& buffer, int value) {
    std::ranges::fill(buffer.span(), static_cast<std::byte>(value));
    return buffer.span();
  }
  // Writes blocks of 1, 2, 3 and so on.
  void write(SegmentNumber segment, int blocks) {
    auto writer = store_->create(segment);
    ASSERT_TRUE(writer);
    for (int i = 1; i <= blocks; ++i) {
      base::AlignedBuffer block(kBlock);
      const std::array<std::span<const std::byte>, 1> parts{fill(block, i)};
      ASSERT_TRUE((*writer)->append(parts));
    }
    ASSERT_TRUE(store_->sync(segment));
    ASSERT_TRUE(store_->sync_names(kind_of(segment)));
  }
  std::vector<std::byte> read(StoredFile file) {
    const auto opened = store_->open(file, ReadMode::kCached);
    EXPECT_TRUE(opened);
    if (!opened) return {};
    std::vector<std::byte> bytes(*(*opened)->size());
    EXPECT_EQ(*(*opened)->read_at(0, bytes), bytes.size());
    return bytes;
  }
  std::set<StoredFile> listed(StoredKind kind) {
    const auto all = store_->list(kind);
    EXPECT_TRUE(all);
    return {all->begin(), all->end()};
  }

  std::unique_ptr<io::FileSystem> files_;
  std::unique_ptr<SegmentStore> store_;
};

TEST_P(SegmentStoreContract, AppendedPartsFollowEachOther) {
  auto writer = store_->create(kSegment);
  ASSERT_TRUE(writer);
  base::AlignedBuffer one(kBlock), two(2 * kBlock), three(kBlock);
  const std::array<std::span<const std::byte>, 2> first{fill(one, 1), fill(two, 2)};
  const std::array<std::span<const std::byte>, 1> second{fill(three, 3)};
  ASSERT_TRUE((*writer)->append(first));
  ASSERT_TRUE((*writer)->append(second));
  ASSERT_TRUE(store_->sync(kSegment));
  const auto bytes = read(kSegment);
  ASSERT_EQ(bytes.size(), 4 * kBlock);
  EXPECT_EQ(bytes[kBlock - 1], std::byte{1});
  EXPECT_EQ(bytes[kBlock], std::byte{2});
  EXPECT_EQ(bytes[3 * kBlock], std::byte{3});
  EXPECT_EQ(*store_->size(kSegment), 4 * kBlock);
}

TEST_P(SegmentStoreContract, CreatingEmptiesAFileOfThatNumber) {
  write(kSegment, 3);
  write(kSegment, 1);
  EXPECT_EQ(*store_->size(kSegment), kBlock);
}

TEST_P(SegmentStoreContract, FilesAreListedByKind) {
  write(kSegment, 1);
  write(kVolume, 1);
  const std::array<std::span<const std::byte>, 0> nothing{};
  ASSERT_TRUE(store_->put(kGroup, nothing));
  EXPECT_EQ(listed(StoredKind::kSegments), std::set<StoredFile>{kSegment});
  EXPECT_EQ(listed(StoredKind::kVolumes), std::set<StoredFile>{kVolume});
  EXPECT_EQ(listed(StoredKind::kGroups), std::set<StoredFile>{kGroup});
  ASSERT_TRUE(store_->remove(kVolume));
  EXPECT_TRUE(listed(StoredKind::kVolumes).empty());
}

TEST_P(SegmentStoreContract, MissingFilesAreNotFound) {
  EXPECT_EQ(store_->open(kSegment, ReadMode::kPlanned).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(store_->size(kSegment).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(store_->remove(kSegment).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(store_->cut(kSegment, 0).error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(listed(StoredKind::kSegments).empty()) << "asking created the file";
}

TEST_P(SegmentStoreContract, ACutKeepsTheStart) {
  write(kVolume, 3);
  const auto before = read(kVolume);
  ASSERT_TRUE(store_->cut(kVolume, 5000));
  EXPECT_EQ(read(kVolume), std::vector<std::byte>(before.begin(), before.begin() + 5000));
}

TEST_P(SegmentStoreContract, ACorrectionChangesItsRangesOnly) {
  write(kVolume, 3);
  auto wanted = read(kVolume);
  std::fill_n(wanted.begin() + 100, 50, std::byte{0xaa});
  std::fill_n(wanted.begin() + 9000, 10, std::byte{0xbb});
  ASSERT_TRUE(store_->correct(kVolume, {{100, std::vector<std::byte>(50, std::byte{0xaa})},
                                        {9000, std::vector<std::byte>(10, std::byte{0xbb})}}));
  EXPECT_EQ(read(kVolume), wanted);
  EXPECT_EQ(listed(StoredKind::kVolumes), std::set<StoredFile>{kVolume});
}

TEST_P(SegmentStoreContract, ACorrectionLengthensAShortFileAndCreatesAMissingOne) {
  write(kSegment, 1);
  ASSERT_TRUE(store_->correct(kSegment, {{6000, std::vector<std::byte>(10, std::byte{7})}}));
  const auto bytes = read(kSegment);
  ASSERT_EQ(bytes.size(), 6010U);
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[5999], std::byte{0});
  EXPECT_EQ(bytes[6000], std::byte{7});
  ASSERT_TRUE(store_->correct(kVolume, {{10, std::vector<std::byte>(1, std::byte{9})}}));
  EXPECT_EQ(read(kVolume).size(), 11U);
}

TEST_P(SegmentStoreContract, EachRangeOfABatchIsCompletedOnce) {
  write(kSegment, 8);
  const auto opened = store_->open(kSegment, ReadMode::kPlanned);
  ASSERT_TRUE(opened);
  std::vector<std::vector<std::byte>> room(9, std::vector<std::byte>(kBlock));
  std::vector<RangeRead> ranges;
  for (std::size_t i = 0; i < room.size(); ++i) ranges.push_back({*opened, i * kBlock, room[i]});
  std::mutex mutex;
  std::condition_variable all_done;
  std::vector<std::size_t> got(room.size(), 99);
  std::size_t completed = 0;
  store_->read_many(ranges, [&](std::size_t position, Result<std::size_t> bytes) {
    const std::lock_guard lock(mutex);
    got[position] = bytes ? *bytes : 77;
    ++completed;
    all_done.notify_all();
  });
  std::unique_lock lock(mutex);
  ASSERT_TRUE(
      all_done.wait_for(lock, std::chrono::seconds(20), [&] { return completed == room.size(); }));
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(got[i], kBlock);
    EXPECT_EQ(room[i].front(), static_cast<std::byte>(i + 1));
  }
  EXPECT_EQ(got[8], 0U) << "the file ends before";
}

INSTANTIATE_TEST_SUITE_P(Stores, SegmentStoreContract,
                         testing::Values(Kind::kFolder, Kind::kFolderOfEncrypted, Kind::kMemory),
                         [](const auto& one) { return name_of(one.param); });

TEST(DistantStore, DozensOfReadsAreInFlightAtOnce) {
  constexpr std::size_t kReads = 48;
  constexpr std::chrono::milliseconds kLatency(50);
  test::MemorySegmentStore store(kLatency);
  const std::vector<std::byte> content(kReads << 20, std::byte{6});
  const std::array<std::span<const std::byte>, 1> parts{content};
  ASSERT_TRUE(store.put(kSegment, parts));
  const auto opened = *store.open(kSegment, ReadMode::kPlanned);
  std::vector<std::byte> room(kReads << 20);
  std::vector<RangeRead> ranges;
  for (std::size_t i = 0; i < kReads; ++i) {
    ranges.push_back({opened, i << 20, std::span(room).subspan(i << 20, 1U << 20)});
  }
  std::mutex mutex;
  std::condition_variable all_done;
  std::size_t completed = 0;
  const auto begin = std::chrono::steady_clock::now();
  store.read_many(ranges, [&](std::size_t /*position*/, const Result<std::size_t>& got) {
    EXPECT_TRUE(got && *got == 1U << 20);
    const std::lock_guard lock(mutex);
    ++completed;
    all_done.notify_all();
  });
  std::unique_lock lock(mutex);
  ASSERT_TRUE(
      all_done.wait_for(lock, std::chrono::seconds(20), [&] { return completed == kReads; }));
  EXPECT_EQ(store.in_flight_max(), kReads);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kReads * kLatency / 2)
      << "the reads waited for each other";
  EXPECT_EQ(room, content);
}

TEST(DistantStore, AnUnavailableStoreAnswersAnotherTry) {
  test::MemorySegmentStore store;
  const std::vector<std::byte> content(10, std::byte{1});
  const std::array<std::span<const std::byte>, 1> parts{content};
  ASSERT_TRUE(store.put(kGroup, parts));
  const auto opened = *store.open(kGroup, ReadMode::kCached);
  std::vector<std::byte> out(10);
  store.fail_reads(1);
  EXPECT_EQ(opened->read_at(0, out).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(*opened->read_at(0, out), out.size());
}

}  // namespace
}  // namespace varve::store
