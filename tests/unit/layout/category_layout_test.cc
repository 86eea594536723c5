// SPDX-License-Identifier: Apache-2.0
// Where chunks lie, over restarts and after versions that are given up.
#include "layout/category_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "catalog/location_table.h"
#include "format/fingerprinter.h"
#include "io/memory_file_system.h"
#include "meta/schema.h"
#include "store/folder_store.h"
#include "support/faulty_file_system.h"
#include "support/temp_repository.h"

namespace varve::layout {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr VersionNumber kFirst{1};
constexpr VersionNumber kSecond{2};
constexpr VersionNumber kThird{3};

class CategoryLayoutTest : public testing::Test {
 protected:
  CategoryLayoutTest()
      : files_(std::make_unique<test::FaultyFileSystem>(io::make_memory_file_system())),
        pool_(2, "test"),
        catalog_(open()) {
    must(files_->make_directory("/r"));
    restart();
  }
  meta::Env open() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    return must(meta::Env::open(directory_.path(), options));
  }
  void restart() {
    layout_.reset();
    store_.emplace(*files_, "/r/1");
    CategoryLayoutOptions options;
    options.series = SeriesId{1};
    options.store = StoreId{1};
    layout_ = must(CategoryLayout::open(catalog_, *store_, *codec_, &pool_, options));
  }

  static std::string chunk(std::uint64_t seed) {
    return varve::test::noise(1000 + seed * 37 % 9000, seed);
  }
  std::vector<ChunkId> place(std::uint64_t from_seed, std::uint64_t count) {
    std::vector<ChunkId> ids;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bytes = chunk(from_seed + i);
      const auto raw = base::as_bytes(bytes);
      ids.push_back(must(layout_->place(fingerprinter_->fingerprint(raw), raw)));
    }
    return ids;
  }
  std::string read(ChunkId id) {
    const auto where = must(layout_->locate(id));
    EXPECT_GE(id.value, where.first.value);
    EXPECT_LT(id.value - where.first.value, where.count);
    const auto header = must(layout_->header(where.container));
    const auto& entry = header->chunks.at(where.index + (id.value - where.first.value));
    EXPECT_EQ(entry.id, id);
    const auto& frame = header->frames.at(entry.frame);
    std::vector<std::byte> stored(frame.stored_bytes);
    std::vector<std::byte> raw(frame.raw_bytes);
    must(layout_->read_data(where.container, frame.offset, stored));
    must(codec_->decode(format::place_of_frame(*header, entry.frame), frame, stored, raw));
    return std::string(base::as_text(std::span(raw).subspan(entry.frame_offset, entry.raw_bytes)));
  }
  void expect_chunks(const std::vector<ChunkId>& ids, std::uint64_t from_seed) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_TRUE(read(ids[i]) == chunk(from_seed + i)) << i;
    }
  }

  varve::test::TempDirectory directory_;
  std::unique_ptr<test::FaultyFileSystem> files_;
  std::optional<store::FolderStore> store_;
  base::ThreadPool pool_;
  meta::Env catalog_;
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_ =
      format::make_sha256_fingerprinter();
  const std::unique_ptr<const format::FrameCodec> codec_ =
      format::make_plain_frame_codec({Codec::kZstd, 1});
  std::unique_ptr<CategoryLayout> layout_;
};

TEST_F(CategoryLayoutTest, IdsAscendWithoutGapsAndAreFoundAfterEachStep) {
  must(layout_->begin_version(kFirst));
  const auto ids = place(0, 1500);
  for (std::uint32_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], ChunkId::make(kFirst, i));
  EXPECT_TRUE(layout_->read_unwritten(ids.back()));
  must(layout_->flush());
  expect_chunks(ids, 0);
  EXPECT_FALSE(layout_->read_unwritten(ids.back()));
  must(layout_->sync());
  expect_chunks(ids, 0);
  restart();
  expect_chunks(ids, 0);
  EXPECT_EQ(code_of(layout_->locate(ChunkId::make(kFirst, 1500))), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(layout_->locate(ChunkId::make(kSecond, 0))), ErrorCode::kCorrupt);
  must(layout_->begin_version(kFirst));  // The version goes on.
  EXPECT_EQ(place(9000, 1)[0], ChunkId::make(kFirst, 1500));
}

TEST_F(CategoryLayoutTest, WhatWasNotSyncedIsOverwrittenAfterARestart) {
  must(layout_->begin_version(kFirst));
  const auto kept = place(0, 100);
  must(layout_->sync());
  place(100, 3000);
  must(layout_->flush());
  restart();
  must(layout_->begin_version(kFirst));
  const auto next = place(50000, 200);
  EXPECT_EQ(next[0], ChunkId::make(kFirst, 100));
  must(layout_->sync());
  expect_chunks(kept, 0);
  expect_chunks(next, 50000);
}

TEST_F(CategoryLayoutTest, BeginningTheSameVersionAgainGivesNoIdTwice) {
  must(layout_->begin_version(kFirst));
  const auto first = place(0, 50);  // Not synced: the catalog does not know them.
  must(layout_->begin_version(kFirst));
  const auto second = place(1000, 50);
  EXPECT_EQ(second[0], ChunkId::make(kFirst, 50));
  must(layout_->sync());
  expect_chunks(first, 0);
  expect_chunks(second, 1000);
}

TEST_F(CategoryLayoutTest, DeletedVersionGivesItsSpaceToTheNext) {
  must(layout_->begin_version(kFirst));
  const auto kept = place(0, 100);
  must(layout_->sync());
  const auto before = must(files_->tree_bytes("/r/1"));
  must(layout_->begin_version(kSecond));
  auto gone = place(5000, 2000);
  must(layout_->sync());
  expect_chunks(gone, 5000);  // Headers and files are kept at hand now.
  const auto more = place(8000, 100);
  EXPECT_GT(must(files_->tree_bytes("/r/1")), before);
  must(layout_->on_delete(kSecond));
  EXPECT_EQ(must(files_->tree_bytes("/r/1")), before);
  for (const auto id : {gone[0], gone[1999], more[0]}) {
    EXPECT_EQ(code_of(layout_->locate(id)), ErrorCode::kCorrupt);
    EXPECT_FALSE(layout_->read_unwritten(id));
  }
  must(layout_->begin_version(kThird));
  const auto next = place(20000, 1500);
  must(layout_->sync());
  expect_chunks(next, 20000);
  expect_chunks(kept, 0);
  restart();
  expect_chunks(next, 20000);
  expect_chunks(kept, 0);
}

TEST_F(CategoryLayoutTest, EveryVersionHasFilesOfItsOwn) {
  must(layout_->begin_version(kFirst));
  const auto kept = place(0, 10);
  must(layout_->sync());
  must(layout_->begin_version(kSecond));
  const auto gone = place(100, 300);
  must(layout_->sync());
  EXPECT_TRUE(must(files_->exists("/r/1/active/00000001.seg")));
  expect_chunks(gone, 100);
  must(layout_->on_delete(kSecond));
  EXPECT_FALSE(must(files_->exists("/r/1/active/00000001.seg")));
  must(layout_->begin_version(kThird));
  const auto next = place(7000, 300);
  must(layout_->sync());
  EXPECT_FALSE(must(files_->exists("/r/1/active/00000001.seg"))) << "a number was used again";
  expect_chunks(next, 7000);
  expect_chunks(kept, 0);
}

TEST_F(CategoryLayoutTest, NumbersAreNotUsedAgainAfterARestart) {
  must(layout_->begin_version(kFirst));
  place(0, 10);
  must(layout_->sync());
  must(layout_->on_delete(kFirst));
  restart();
  must(layout_->begin_version(kSecond));
  const auto ids = place(0, 10);
  must(layout_->sync());
  EXPECT_EQ(must(layout_->locate(ids[0])).container, ContainerNumber{1});
  EXPECT_TRUE(must(files_->exists("/r/1/active/00000001.seg")));
}

TEST_F(CategoryLayoutTest, FailedWriteLeavesNoHoleInTheNumbersAndNoCollision) {
  must(layout_->begin_version(kFirst));
  auto ids = place(0, 700);
  files_->faults.writes_until_fault = 0;
  ASSERT_FALSE(layout_->flush());
  // The checkpoint that follows stores the counters while the container has a number and no place.
  const auto more = place(700, 700);
  ids.insert(ids.end(), more.begin(), more.end());
  files_->faults.writes_until_fault = 1;
  static_cast<void>(layout_->sync());
  must(layout_->sync());
  const auto numbers = [&] {
    std::vector<ContainerNumber> found;
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    must(catalog::for_each_container(txn, StoreId{1},
                                     [&](const format::ContainerRecord& record) -> Result<bool> {
                                       found.push_back(record.number);
                                       return true;
                                     }));
    return found;
  };
  const auto expect_dense = [&] {
    const auto found = numbers();
    ASSERT_GE(found.size(), 2U);
    for (std::uint32_t i = 1; i < found.size(); ++i) {
      EXPECT_EQ(found[i], number_after(found[i - 1]));
    }
  };
  expect_dense();
  expect_chunks(ids, 0);
  restart();
  expect_chunks(ids, 0);
  must(layout_->begin_version(kFirst));
  const auto next = place(90000, 700);
  ids.insert(ids.end(), next.begin(), next.end());
  must(layout_->sync());
  expect_dense();
  expect_chunks(next, 90000);
}

TEST_F(CategoryLayoutTest, FilesThatTheCatalogDoesNotKnowAreRemovedAtTheStart) {
  must(layout_->begin_version(kFirst));
  const auto kept = place(0, 100);
  must(layout_->sync());
  const auto before = must(files_->tree_bytes("/r/1"));
  for (const char* name : {"active/00000099.seg", "volumes/00000098.vol"}) {
    const auto file = must(files_->open(std::string("/r/1/") + name, io::OpenMode::kCreateNew));
    must(file->write_at(0, base::as_bytes("left by a crash")));
  }
  {
    const auto file = must(files_->open("/r/1/active/00000000.seg", io::OpenMode::kReadWrite));
    must(file->write_at(must(file->size()), base::as_bytes("so was this")));
  }
  restart();
  EXPECT_EQ(must(files_->tree_bytes("/r/1")), before);
  expect_chunks(kept, 0);
}

TEST_F(CategoryLayoutTest, ContainerThatIsNotThereIsStale) {
  EXPECT_EQ(code_of(layout_->header(ContainerNumber{77})), ErrorCode::kStale);
  std::vector<std::byte> out(1);
  EXPECT_EQ(code_of(layout_->read_data(ContainerNumber{77}, 0, out)), ErrorCode::kStale);
  EXPECT_EQ(layout_->describe(ContainerNumber{77}), "container 77");
  EXPECT_EQ(code_of(layout_->place({}, out)), ErrorCode::kInvalid);  // No version is begun.
}

// As after damage to the catalog: a location names a container that has no record.
TEST_F(CategoryLayoutTest, DigestOfChunksInAMissingContainerEnds) {
  must(layout_->begin_version(kFirst));
  static_cast<void>(place(0, 10));
  must(layout_->sync());
  restart();
  const auto container = must(layout_->locate(ChunkId::make(kFirst, 0))).container;
  auto txn = must(meta::WriteTxn::begin(catalog_));
  must(txn.erase(meta::catalog::kContainers, meta::container_key(StoreId{1}, container)));
  must(txn.commit());
  restart();
  const auto ids = base::IdRuns::from({{ChunkId::make(kFirst, 0), 10}});
  EXPECT_EQ(code_of(layout_->digest(ids)), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::layout
