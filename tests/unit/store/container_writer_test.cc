// SPDX-License-Identifier: Apache-2.0
// Writing containers: accepted chunks can be read, or come to disk once there is room.
#include "store/container_writer.h"
#include "store/folder_store.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "container_writer_fixture.h"

namespace varve::store {
namespace {

TEST_F(ContainerWriterTest, FlushedContainersHoldEveryChunkOnce) {
  start();
  append_all(0, 2000);
  ASSERT_TRUE(writer_->flush());
  expect_on_disk(2000);
  EXPECT_GT(written_.size(), 3U);
  ASSERT_TRUE(writer_->flush());  // Nothing is left: no empty container.
  const auto containers = written_.size();
  append_all(2000, 2001);
  ASSERT_TRUE(writer_->sync());
  EXPECT_EQ(written_.size(), containers + 1);
  expect_on_disk(2001);
  EXPECT_EQ(writer_->stored_bytes(), *files_.tree_bytes("/s"));
}

// Uncompressed chunks get small frames, for random reads of small pieces. Incompressible chunks of
// a sealed container get small frames, too.
TEST_F(ContainerWriterTest, FramesAreLargeOnlyWhereTheyAreCompressed) {
  for (const auto& [codec, sealed, least, most] :
       {std::tuple(Codec::kNone, false, 24U << 10, 32U << 10),
        std::tuple(Codec::kZstd, false, 112U << 10, 128U << 10),
        std::tuple(Codec::kNone, true, 24U << 10, 32U << 10),
        std::tuple(Codec::kZstd, true, 20U << 10, 32U << 10)}) {
    compression_.codec = codec;
    sealed_ = sealed;
    written_.clear();
    start();
    append_all(0, 600);
    ASSERT_TRUE(writer_->flush());
    std::size_t frames = 0, bytes = 0;
    for (const auto& one : written_) {
      frames +=
          SegmentReader(*store_, codec_->keys()).read_header(kStore, one.record)->frames.size();
      bytes += one.record.raw_bytes;
    }
    EXPECT_GE(bytes / frames, least) << sealed;
    EXPECT_LE(bytes / frames, most) << sealed;
  }
}

// The headers of containers with tiny chunks are longer than the data.
TEST_F(ContainerWriterTest, TinyChunksFillContainersThatTheirHeadersFitIn) {
  for (const auto codec : {Codec::kNone, Codec::kZstd}) {
    compression_.codec = codec;
    const std::string series = codec == Codec::kNone ? "/a" : "/z";
    store_.emplace(files_, series);
    ASSERT_TRUE(store_->prepare());
    written_.clear();
    start();
    constexpr std::uint32_t kChunks = 200000;
    for (std::uint32_t i = 0; i < kChunks; ++i) {
      const std::array<std::byte, 3> raw = {static_cast<std::byte>(i),
                                            static_cast<std::byte>(i >> 8),
                                            static_cast<std::byte>(i >> 16)};
      ASSERT_TRUE(writer_->append(ChunkId::make(kVersion, i), Fingerprint(), raw));
    }
    ASSERT_TRUE(writer_->sync());
    SegmentReader reader(*store_, codec_->keys());
    std::uint32_t chunks = 0;
    for (const auto& written : written_) {
      EXPECT_LE(written.record.end() - written.record.offset, format::kContainerBytesMax);
      const auto header = reader.read_header(kStore, written.record);
      ASSERT_TRUE(header) << header.error().message();
      chunks += written.record.chunks;
    }
    EXPECT_EQ(chunks, kChunks);
  }
}

TEST_F(ContainerWriterTest, ChunkIsReadableFromTheCallOnUntilItIsWritten) {
  compression_.codec = Codec::kZstd;
  start();
  append_all(0, 200);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto bytes = writer_->read_unwritten(ChunkId::make(kVersion, i));
    const std::lock_guard lock(mutex_);
    bool written = false;
    for (const auto& container : written_) {
      for (const auto& run : container.ids) {
        written = written || (i >= run.first.ordinal() && i - run.first.ordinal() < run.count);
      }
    }
    ASSERT_TRUE(bytes || written) << i;
    if (bytes) {
      ASSERT_TRUE(*bytes == chunk_bytes(i, false)) << i;
    }
  }
  EXPECT_FALSE(writer_->read_unwritten(ChunkId::make(kVersion, 200)));
  ASSERT_TRUE(writer_->flush());
  for (std::uint32_t i = 0; i < 200; ++i) {
    EXPECT_FALSE(writer_->read_unwritten(ChunkId::make(kVersion, i)));
  }
}

TEST_F(ContainerWriterTest, FullDiskLosesNothingThatWasTaken) {
  start();
  std::uint32_t next = 0;
  for (int round = 0; round < 3; ++round) {
    append_all(next, next + 600);
    next += 600;
    files_.faults.disk_full = true;
    const auto flushed = writer_->flush();
    ASSERT_FALSE(flushed);
    EXPECT_EQ(flushed.error().code(), ErrorCode::kNoSpace);
    for (int i = 0; i < 3; ++i) {
      const auto refused = append(next);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code(), ErrorCode::kNoSpace);
    }
    EXPECT_TRUE(writer_->read_unwritten(ChunkId::make(kVersion, next - 1)));
    files_.faults.disk_full = false;
    append_all(next, next + 1);  // The refused chunk.
    ++next;
  }
  ASSERT_TRUE(writer_->sync());
  expect_on_disk(next);
}

TEST_F(ContainerWriterTest, TornWriteIsWrittenAgain) {
  start();
  append_all(0, 100);
  files_.faults.writes_fail = true;
  const auto flushed = writer_->flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code(), ErrorCode::kIo);
  files_.faults.writes_fail = false;
  ASSERT_TRUE(writer_->flush());
  expect_on_disk(100);
}

TEST_F(ContainerWriterTest, FramesAreSealedOnceInTheirOwnPlaceDespiteTornWritesAndSyncs) {
  sealed_ = true;
  std::uint32_t next = 0;
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    compression_.codec = codec;
    compressible_ = true;
    start();
    append_all(next, next + 300);
    next += 300;
    files_.faults.writes_fail = true;
    ASSERT_FALSE(writer_->flush());
    ASSERT_FALSE(writer_->flush());
    files_.faults.writes_fail = false;
    ASSERT_TRUE(writer_->sync());
    append_all(next, next + 5000);
    next += 5000;
    ASSERT_TRUE(writer_->sync());
  }
  expect_on_disk(next);
}

// A container takes two writes: the data and the header.
TEST_F(ContainerWriterTest, ContainerKeepsItsNumberAndItsPlaceIfAWriteFails) {
  sealed_ = true;
  for (int fault = 0; fault < 8; ++fault) {
    SCOPED_TRACE(fault);
    store_.emplace(files_, "/fault-" + std::to_string(fault));
    ASSERT_TRUE(store_->prepare());
    numbers_.set_next(ContainerNumber{10});
    written_.clear();
    start();
    files_.faults.writes_until_fault = fault;
    for (std::uint32_t i = 0; i < 3000; ++i) {
      auto done = append(i);
      if (!done) done = append(i);
      ASSERT_TRUE(done) << done.error().message();
    }
    EXPECT_TRUE(writer_->flush() || writer_->flush());
    ASSERT_TRUE(writer_->sync());
    EXPECT_LT(files_.faults.writes_until_fault, 0) << "no write failed";
    expect_on_disk(3000);
    ASSERT_GE(written_.size(), 5U);
    for (std::uint32_t i = 0; i < written_.size(); ++i) {
      EXPECT_EQ(written_[i].record.number, ContainerNumber{10 + i});
    }
    std::uint64_t bytes = 0;
    for (const auto segment : writer_->segments()) {
      const auto size = store_->size(segment);
      ASSERT_TRUE(size) << "a segment without a file";
      bytes += *size;
    }
    EXPECT_EQ(bytes, writer_->stored_bytes()) << "a failed write leaves bytes";
    writer_.reset();
  }
}

// A number from the start of the sequence would belong to another container or an existing file.
TEST_F(ContainerWriterTest, WithoutANumberNothingIsWritten) {
  for (const auto last : {0x7fffffffU, 0xffffffffU}) {
    numbers_.set_next(ContainerNumber{last - 1});
    start();
    append_all(0, 1);
    test::must(writer_->flush());
    append_all(1, 2);
    EXPECT_EQ(writer_->flush().error().code(), ErrorCode::kTooLarge);
    EXPECT_EQ(numbers_.next_container(), ContainerNumber{last});
    writer_.reset();
  }
  numbers_.set_next(ContainerNumber{1});
  numbers_.set_next(SegmentNumber{0x7fffffff});
  start();
  append_all(0, 1);
  EXPECT_EQ(writer_->flush().error().code(), ErrorCode::kTooLarge);
}

TEST_F(ContainerWriterTest, DestructionOnAFullDiskEnds) {
  for (int round = 0; round < 3; ++round) {
    start();
    append_all(0, 700);
    files_.faults.disk_full = true;
    if (round != 1) {
      EXPECT_FALSE(writer_->flush());
    }
    if (round == 2) {
      EXPECT_FALSE(writer_->sync());
    }
    writer_.reset();  // Would spin for ever if the writer went on trying.
    files_.faults.disk_full = false;
  }
}

TEST_F(ContainerWriterTest, DestructionWithoutFlushingWaitsForTheCompressors) {
  compression_.codec = Codec::kZstd;
  compression_.level = 15;
  start();
  append_all(0, 400);
  writer_.reset();
}

TEST_F(ContainerWriterTest, VeryCompressibleChunksDoNotGatherInMemory) {
  compression_.codec = Codec::kZstd;
  compressible_ = true;
  start();
  append_all(0, 12000);  // About 96 MiB raw; compressed, less than one container.
  ASSERT_TRUE(writer_->flush());
  expect_on_disk(12000);
  EXPECT_GT(written_.size(), 4U);
}

// A partly filled container must not need more bytes than may wait in memory.
TEST_F(ContainerWriterTest, VeryCompressibleChunksDoNotWaitForEver) {
  compression_.codec = Codec::kZstd;
  options_.waiting_bytes_max = 1U << 20;
  compressible_ = true;
  start();
  append_all(0, 1000);
  ASSERT_TRUE(writer_->flush());
  expect_on_disk(1000);
}

// Packed chunks wait no longer, so a little memory is enough to fill containers.
TEST_F(ContainerWriterTest, WithoutReadersContainersAreFullWhateverMayWait) {
  options_.waiting_bytes_max = 1U << 20;
  options_.readable = false;
  start();
  append_all(0, 2000);  // About 16 MiB.
  ASSERT_TRUE(writer_->flush());
  expect_on_disk(2000);
  for (std::size_t i = 0; i + 1 < written_.size(); ++i) {
    EXPECT_GT(written_[i].record.raw_bytes, format::kContainerBytesMax - (256U << 10));
  }
}

TEST_F(ContainerWriterTest, WithoutReadersAFullDiskLosesNothing) {
  options_.waiting_bytes_max = 1U << 20;
  options_.readable = false;
  compression_.codec = Codec::kZstd;
  start();
  append_all(0, 300);
  files_.faults.disk_full = true;
  EXPECT_EQ(writer_->flush().error().code(), ErrorCode::kNoSpace);
  files_.faults.disk_full = false;
  append_all(300, 900);
  ASSERT_TRUE(writer_->flush());
  expect_on_disk(900);
}

TEST_F(ContainerWriterTest, NextWriterBeginsAnotherFile) {
  start();
  append_all(0, 300);
  ASSERT_TRUE(writer_->sync());
  const auto last = written_.back().record;
  writer_.reset();
  start();
  append_all(300, 500);
  ASSERT_TRUE(writer_->sync());
  EXPECT_GT(written_.back().record.segment, last.segment);
  EXPECT_GT(written_.back().record.number, last.number);
  EXPECT_EQ(writer_->segments().front(), number_after(last.segment));
  expect_on_disk(500);
}

TEST_F(ContainerWriterTest, SegmentsHoldOneContainerWhileTheRunIsShort) {
  start();
  append_all(0, 1200);
  ASSERT_TRUE(writer_->sync());
  ASSERT_GE(written_.size(), 2U);
  EXPECT_EQ(written_[0].record.offset, 0U);
  EXPECT_EQ(written_[1].record.segment, number_after(written_[0].record.segment));
  EXPECT_EQ(written_[1].record.offset, 0U);
  EXPECT_EQ(segment_bytes_for(0), kSegmentBytesMin);
  EXPECT_EQ(segment_bytes_for(4ULL << 30), 32ULL << 20);
  EXPECT_EQ(segment_bytes_for(1ULL << 40), kSegmentBytesMax);
}

TEST_F(ContainerWriterTest, ArrangedSegmentsAreShorter) {
  EXPECT_EQ(arranged_segment_bytes_for(0), kArrangedSegmentBytesMin);
  EXPECT_EQ(arranged_segment_bytes_for(4ULL << 30), 2ULL << 20);
  EXPECT_EQ(arranged_segment_bytes_for(1ULL << 40), kSegmentBytesMax);
  options_.segment_bytes_max = kArrangedSegmentBytesMin;
  start();
  append_all(0, 500);
  ASSERT_TRUE(writer_->sync());
  ASSERT_GE(written_.size(), 4U);
  for (const auto& one : written_) {
    EXPECT_EQ(one.record.offset, 0U);
    EXPECT_LE(one.record.end(), kArrangedSegmentBytesMin);
  }
  expect_on_disk(500);
}

TEST_F(ContainerWriterTest, VolumesHoldContainersWithoutPadding) {
  options_.volume = true;
  options_.segment_bytes_max = ~std::uint64_t{0};
  start();
  append_all(0, 3);
  ASSERT_TRUE(writer_->flush());
  append_all(3, 20);
  ASSERT_TRUE(writer_->sync());
  ASSERT_EQ(written_.size(), 2U);
  const auto& first = written_[0].record;
  ASSERT_LE(first.raw_bytes, 32U << 10);
  EXPECT_TRUE(first.compact);
  EXPECT_TRUE(is_volume(first.segment));
  EXPECT_EQ(first.end() - first.offset, first.header_bytes + first.data_bytes);
  EXPECT_EQ(first.header_bytes, 128 + 24 * 1 + 12 * 1 + 35 * 3);
  EXPECT_EQ(written_[1].record.offset, first.end());
  EXPECT_EQ(*files_.tree_bytes("/s"), written_[1].record.end());
  expect_on_disk(20);
}

TEST_F(ContainerWriterTest, ReadersAndWritersWorkAtTheSameTime) {
  compression_.codec = Codec::kZstd;
  start();
  std::thread reading([&] {
    for (std::uint32_t i = 0; i < 20000; ++i) {
      const auto bytes = writer_->read_unwritten(ChunkId::make(kVersion, i % 1500));
      if (bytes) {
        EXPECT_EQ(bytes->size(), chunk_bytes(i % 1500, false).size());
      }
      if (i % 4000 == 0) {
        EXPECT_TRUE(writer_->sync());
      }
    }
  });
  append_all(0, 1500);
  reading.join();
  ASSERT_TRUE(writer_->flush());
  expect_on_disk(1500);
}

TEST_F(ContainerWriterTest, AnotherContainerInItsPlaceIsCorrupt) {
  start();
  append_all(0, 10);
  ASSERT_TRUE(writer_->flush());
  SegmentReader reader(*store_, codec_->keys());
  auto record = written_[0].record;
  ASSERT_TRUE(reader.read_header(kStore, record));
  EXPECT_EQ(reader.read_header(StoreId{4}, record).error().code(), ErrorCode::kCorrupt);
  const auto number = std::exchange(record.number, number_after(record.number));
  EXPECT_EQ(reader.read_header(kStore, record).error().code(), ErrorCode::kCorrupt);
  record.number = number;
  record.offset = 1 << 20;
  EXPECT_EQ(reader.read_header(kStore, record).error().code(), ErrorCode::kCorrupt);
  record.segment = SegmentNumber{9};
  EXPECT_EQ(reader.read_header(kStore, record).error().code(), ErrorCode::kCorrupt);
  record = written_[0].record;
  std::vector<std::byte> out(100);
  EXPECT_EQ(reader.read_data(record, record.data_bytes - 99, out).error().code(),
            ErrorCode::kCorrupt);
}

// After a crash, the number of a container without a commit is free again, as are its chunks' ids.
TEST_F(ContainerWriterTest, OlderContainerOfTheSameNumberIsRefused) {
  sealed_ = true;
  std::string images[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    store_.emplace(files_, "/s" + std::to_string(i));
    ASSERT_TRUE(store_->prepare());
    numbers_.set_next(ContainerNumber{10});
    numbers_.set_next(SegmentNumber{0});
    written_.clear();
    start();
    const std::vector<std::byte> raw(5000, static_cast<std::byte>(i));
    ASSERT_TRUE(writer_->append(ChunkId::make(kVersion, 0), fingerprinter_->fingerprint(raw), raw));
    ASSERT_TRUE(writer_->sync());
    const auto image = files_.read_file(
        "/s" + std::to_string(i) + "/" + segment_path(written_[0].record.segment), 1U << 20);
    ASSERT_TRUE(image);
    images[i] = *image;
  }
  const auto record = written_[0].record;
  SegmentReader reader(*store_, codec_->keys());
  ASSERT_TRUE(reader.read_header(kStore, record));
  ASSERT_EQ(images[0].size(), images[1].size());
  const auto path = "/s1/" + segment_path(record.segment);
  {
    const auto file = files_.open(path, io::OpenMode::kReadWrite);
    ASSERT_TRUE(file && (*file)->write_at(0, base::as_bytes(images[0])));
  }
  const auto older = reader.read_header(kStore, record);
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::store
