// SPDX-License-Identifier: Apache-2.0
// Reading stored bytes with and without the page cache.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/aligned_buffer.h"
#include "io/posix_file_system.h"
#include "store/folder_store.h"
#include "store/segment_files.h"
#include "support/temp_repository.h"

namespace varve::store {
namespace {

constexpr std::uint32_t kDataBytes = 300'000;

/// One container each in a segment, whose containers are aligned, and at the odd end of a volume.
class SegmentReaderTest : public testing::TestWithParam<bool> {
 protected:
  SegmentReaderTest() : files_(io::make_posix_file_system()) {
    EXPECT_TRUE(files_->make_directory(directory_ + "/active"));
    EXPECT_TRUE(files_->make_directory(directory_ + "/volumes"));
    record_.segment = GetParam() ? as_volume(SegmentNumber{1}) : SegmentNumber{1};
    record_.compact = GetParam();
    record_.offset = GetParam() ? 12'345 : 8192;
    record_.header_bytes = GetParam() ? 777 : 4096;
    record_.data_bytes = kDataBytes;
    std::mt19937 random(1);
    data_.resize(kDataBytes);
    std::ranges::generate(data_, [&] { return static_cast<std::byte>(random()); });
    store_.emplace(*files_, directory_);
    reader_.emplace(*store_, nullptr);
    write(kDataBytes);
  }
  /// The file, with so many bytes of the container's data.
  void write(std::size_t bytes) {
    auto file =
        files_->open(directory_ + "/" + segment_path(record_.segment), io::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->truncate(0));
    const std::vector<std::byte> before(record_.offset + record_.header_bytes, std::byte{0xee});
    ASSERT_TRUE((*file)->write_at(0, before));
    ASSERT_TRUE((*file)->write_at(before.size(), std::span(data_).first(bytes)));
    ASSERT_TRUE((*file)->sync());
    drop_cache();
  }
  void drop_cache() {
    // Advice alone does not empty the cache of what is mapped or dirty; this file is neither.
    const auto path = directory_ + "/" + segment_path(record_.segment);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    ::close(fd);
  }
  void expect_once(std::uint32_t offset, std::size_t bytes) {
    base::AlignedBuffer room(io::direct_room(bytes));
    const auto got = reader_->read_once(record_, offset, bytes, room.span());
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_TRUE(std::ranges::equal(*got, std::span(data_).subspan(offset, bytes)))
        << offset << " " << bytes;
  }
  ErrorCode code_once(std::uint32_t offset, std::size_t bytes) {
    base::AlignedBuffer room(io::direct_room(bytes));
    const auto got = reader_->read_once(record_, offset, bytes, room.span());
    return got ? ErrorCode::kInvalid : got.error().code();
  }

  std::unique_ptr<io::FileSystem> files_;
  const test::TempDirectory folder_;
  const std::string directory_ = folder_.path();
  format::ContainerRecord record_;
  std::vector<std::byte> data_;
  std::optional<FolderStore> store_;
  std::optional<SegmentReader> reader_;
};

TEST_P(SegmentReaderTest, ReadingOnceGivesTheSameBytesFromAnyOffset) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const auto offset = static_cast<std::uint32_t>(random() % kDataBytes);
    expect_once(offset, 1 + random() % (kDataBytes - offset));
  }
  expect_once(0, kDataBytes);
  expect_once(kDataBytes - 1, 1);
  expect_once(4096, 4096);
}

TEST_P(SegmentReaderTest, CachedBytesAreTheSameWithAndWithoutTheCache) {
  std::vector<std::byte> all(kDataBytes);
  ASSERT_TRUE(reader_->read_data(record_, 0, all));
  base::AlignedBuffer room(io::direct_room(kDataBytes));
  const auto direct = reader_->read_direct(record_, 0, kDataBytes, room.span());
  ASSERT_TRUE(direct);
  EXPECT_TRUE(std::ranges::equal(*direct, data_));
  expect_once(0, kDataBytes);
  expect_once(123, 45'678);
}

TEST_P(SegmentReaderTest, RangesOutsideTheContainerAreCorrupt) {
  EXPECT_EQ(code_once(kDataBytes, 1), ErrorCode::kCorrupt);
  EXPECT_EQ(code_once(kDataBytes - 10, 11), ErrorCode::kCorrupt);
  EXPECT_EQ(code_once(0xffffffff, 100), ErrorCode::kCorrupt);
}

TEST_P(SegmentReaderTest, AFileThatEndsEarlyIsCorruptFromThereOn) {
  write(100'000);
  expect_once(0, 100'000);
  EXPECT_EQ(code_once(0, 100'001), ErrorCode::kCorrupt);
  EXPECT_EQ(code_once(99'000, 1'001), ErrorCode::kCorrupt);
  EXPECT_EQ(code_once(200'000, 10), ErrorCode::kCorrupt);
}

TEST_P(SegmentReaderTest, ReadsAroundTheEndOfACutFile) {
  write(100'000);
  std::vector<std::byte> out(150'000);
  base::AlignedBuffer room(io::direct_room(out.size()));
  const auto direct = reader_->read_direct_around(record_, 50'000, out.size(), room.span());
  ASSERT_TRUE(direct);
  const auto cached = reader_->read_around(record_, 50'000, out);
  ASSERT_TRUE(cached);
  for (const auto* unread : {&direct->unread, &*cached}) {
    EXPECT_EQ(unread->find(0, 50'000), nullptr);
    EXPECT_NE(unread->find(49'999, 50'001), nullptr);
    EXPECT_NE(unread->find(149'999, 150'000), nullptr);
  }
  const auto wanted = std::span(data_).subspan(50'000, 50'000);
  EXPECT_TRUE(std::ranges::equal(direct->bytes.first(50'000), wanted));
  EXPECT_TRUE(std::ranges::equal(std::span(out).first(50'000), wanted));
}

TEST_P(SegmentReaderTest, AForgottenFileIsOpenedAnew) {
  expect_once(0, 1000);
  ASSERT_TRUE(files_->remove(directory_ + "/" + segment_path(record_.segment)));
  std::ranges::reverse(data_);
  write(kDataBytes);
  reader_->forget(record_.segment);
  expect_once(0, 1000);
  expect_once(200'000, 100'000);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SegmentReaderTest, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Volume" : "Segment"; });

}  // namespace
}  // namespace varve::store
