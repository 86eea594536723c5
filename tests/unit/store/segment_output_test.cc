// SPDX-License-Identifier: Apache-2.0
#include "store/segment_output.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/thread_pool.h"
#include "format/frame_codec.h"
#include "io/memory_file_system.h"
#include "store/container_builder.h"
#include "store/folder_store.h"
#include "store/segment_files.h"
#include "support/faulty_file_system.h"
#include "support/test_keys.h"

namespace varve::store {
namespace {

// A folder whose syncs fail at the test's request. Notes each sync and each rewritten place.
class SyncedStore final : public FolderStore {
 public:
  using FolderStore::FolderStore;

  Result<void> sync(StoredFile file) override {
    const auto segment = std::get<SegmentNumber>(file);
    synced.push_back(segment);
    if (failing.contains(segment)) return Error(ErrorCode::kIo, "the test's sync fails");
    return FolderStore::sync(file);
  }
  Result<void> write_again(SegmentNumber segment, std::uint64_t offset,
                           std::span<const std::byte> bytes) override {
    rewritten[segment].push_back(offset);
    return FolderStore::write_again(segment, offset, bytes);
  }

  std::set<SegmentNumber> failing;
  std::vector<SegmentNumber> synced;
  std::map<SegmentNumber, std::vector<std::uint64_t>> rewritten;
};

class SegmentOutputTest : public testing::Test {
 protected:
  SegmentOutputTest() {
    test::must(files_.make_directory("/s"));
    test::must(store_.prepare());
    options_.numbers = &numbers_;
    options_.segment_bytes_max = 1U << 20;
  }

  // Appends a container with one chunk of noise.
  Result<format::ContainerRecord> append(std::uint32_t ordinal) {
    if (builder_.is_empty()) {
      const std::vector<std::byte> raw(100'000, static_cast<std::byte>(ordinal));
      format::ChunkEntry chunk;
      chunk.id = ChunkId::make(VersionNumber{1}, ordinal);
      chunk.raw_bytes = static_cast<std::uint32_t>(raw.size());
      const auto encoded = codec_->compress(raw);
      builder_.pack({{&chunk, 1}, raw, &encoded, 0, false});
    }
    VARVE_TRY(builder_.finish([this] { return numbers_.take_container(); }));
    VARVE_TRY_ASSIGN(const auto record, output_.append(builder_.header(), builder_.header_bytes(),
                                                       builder_.data_bytes()));
    builder_.clear();
    return record;
  }

  test::FaultyFileSystem files_{io::make_memory_file_system()};
  SyncedStore store_{files_, "/s"};
  NumberSource numbers_;
  ContainerWriterOptions options_;
  std::unique_ptr<const format::FrameCodec> codec_ =
      format::make_plain_frame_codec({Codec::kNone, 1});
  ContainerBuilder builder_{StoreId{3}, {}, *codec_, options_.marks};
  SegmentOutput output_{store_, *codec_, options_};
};

TEST_F(SegmentOutputTest, ContainersFollowEachOtherUntilTheFileIsFull) {
  std::uint64_t end = 0;
  std::uint32_t next = 0;
  for (; end + (101'000 + kBlockBytes) <= options_.segment_bytes_max; ++next) {
    const auto record = test::must(append(next));
    EXPECT_EQ(record.segment, SegmentNumber{0});
    EXPECT_EQ(record.offset, end);
    end = record.end();
  }
  ASSERT_GT(next, 5U);
  std::uint64_t all = end;
  while (output_.segments().size() == 1) {
    const auto record = test::must(append(next++));
    all += record.end() - record.offset;
    if (record.segment == SegmentNumber{0}) continue;
    EXPECT_EQ(record.segment, SegmentNumber{1});
    EXPECT_EQ(record.offset, 0U);
  }
  EXPECT_EQ(output_.stored_bytes(), all);
}

TEST_F(SegmentOutputTest, FailedAppendLeavesNoGap) {
  const auto first = test::must(append(0));
  files_.faults.writes_fail = true;
  EXPECT_EQ(append(1).error().code(), ErrorCode::kIo);
  EXPECT_EQ(output_.stored_bytes(), first.end());
  files_.faults.writes_fail = false;
  const auto second = test::must(append(1));
  EXPECT_EQ(second.segment, first.segment);
  EXPECT_EQ(second.offset, first.end());
  EXPECT_EQ(second.number, number_after(first.number));
}

TEST_F(SegmentOutputTest, FolderWithTheNameOfASegmentCostsANumber) {
  test::must(files_.make_directory("/s/" + segment_path(SegmentNumber{0})));
  EXPECT_EQ(test::must(append(0)).segment, SegmentNumber{1});
  EXPECT_EQ(output_.segments(), std::vector{SegmentNumber{1}});
}

TEST_F(SegmentOutputTest, FullDiskRefusesAContainerUnlessAdmitted) {
  files_.faults.disk_full = true;
  EXPECT_EQ(output_.check_space().error().code(), ErrorCode::kNoSpace);
  options_.admitted = true;
  EXPECT_TRUE(output_.check_space());
}

TEST_F(SegmentOutputTest, SyncTakesOnlyFilesThatHaveGrown) {
  options_.file_per_container = true;
  test::must(append(0));
  test::must(append(1));
  test::must(output_.sync());
  EXPECT_EQ(store_.synced, (std::vector{SegmentNumber{0}, SegmentNumber{1}}));
  store_.synced.clear();
  test::must(output_.sync());
  EXPECT_TRUE(store_.synced.empty());
  options_.file_per_container = false;
  test::must(append(2));
  test::must(output_.sync());
  EXPECT_EQ(store_.synced, std::vector{SegmentNumber{1}});
}

// Linux reports a failed write once: a second sync would succeed without the bytes.
TEST_F(SegmentOutputTest, ContainersAreWrittenAgainAfterAFailedSync) {
  options_.file_per_container = true;
  test::must(append(0));
  test::must(append(1));
  options_.file_per_container = false;
  test::must(append(2));
  ASSERT_EQ(output_.segments().size(), 2U);
  const auto second = output_.segments().back();
  store_.failing = {second};
  EXPECT_EQ(output_.sync().error().code(), ErrorCode::kIo);
  EXPECT_TRUE(store_.rewritten.empty()) << "the first failure asks for no rewrite";
  store_.failing.clear();
  test::must(output_.sync());
  ASSERT_EQ(store_.rewritten.size(), 1U) << "only the file whose sync failed";
  EXPECT_EQ(store_.rewritten.at(second).size(), 2U);
  store_.rewritten.clear();
  test::must(append(3));
  test::must(output_.sync());
  EXPECT_TRUE(store_.rewritten.empty()) << "the file is in order again";
}

}  // namespace
}  // namespace varve::store
