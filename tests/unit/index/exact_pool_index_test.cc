// SPDX-License-Identifier: Apache-2.0
// The exact index of the pool: reads of the disk, full disks, damage and locks.
#include "index/exact_pool_index.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "support/faulty_file_system.h"
#include "support/pool_containers.h"
#include "support/sealed_memory.h"

namespace varve::index {
namespace {

constexpr StreamNumber kStream{1};
constexpr std::uint32_t kPlaced = 20000;

class ExactPoolIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    base::set_log_level(base::LogLevel::kError);  // Damage is reported as warnings.
    open();
  }
  void TearDown() override { base::set_log_level(base::LogLevel::kWarning); }

  void open(std::size_t memory_bytes = std::size_t{1} << 20) {
    index_.reset();
    index_ = ExactPoolIndex::open(pool_index_folder(files_, "/pool"), containers_, memory_bytes);
  }
  void place(std::uint32_t birth, std::uint64_t content, std::uint32_t count) {
    std::vector<PlacedChunk> chunks;
    for (std::uint32_t i = 0; i < count; ++i) {
      containers_.store(pool_id(birth, i), content + i);
      chunks.push_back({random_fingerprint(content + i), pool_id(birth, i)});
    }
    index_->placed(kStream, chunks);
  }
  [[nodiscard]] PoolHit look(std::uint64_t content) {
    const Fingerprint fingerprint = random_fingerprint(content);
    PoolHit hit;
    index_->lookup(kStream, {&fingerprint, 1}, {&hit, 1});
    return hit;
  }
  [[nodiscard]] std::vector<std::string> run_paths() {
    std::vector<std::string> paths;
    const auto names = *files_.list("/pool");
    for (const auto& name : names) {
      if (store::parse_index_run_name(name)) paths.push_back("/pool/" + name);
    }
    return paths;
  }

  test::FaultyFileSystem files_{test::memory_files()};
  PoolContainers containers_;
  std::unique_ptr<ExactPoolIndex> index_;
};

TEST_F(ExactPoolIndexTest, UnknownChunksReadNoDiskAfterTheFirst) {
  place(1, 0, kPlaced);
  ASSERT_TRUE(index_->save(containers_.live()));
  std::uint64_t before = files_.faults.bytes_read;
  open();
  EXPECT_LE(files_.faults.bytes_read - before, run_paths().size() * 8192 + 8192)
      << "an opening reads headers";
  EXPECT_EQ(look(1'000'000), PoolHit());
  before = files_.faults.bytes_read;
  for (std::uint64_t i = 1; i <= 2000; ++i) EXPECT_EQ(look(1'000'000 + i), PoolHit());
  // A filter errs for about 1 of 100.
  EXPECT_LE((files_.faults.bytes_read - before) / kBlockBytes, 100U * run_paths().size());
}

TEST_F(ExactPoolIndexTest, FiltersOverTheBudgetStayOnDisk) {
  place(1, 0, kPlaced);
  ASSERT_TRUE(index_->save(containers_.live()));
  open(32 << 10);
  for (std::uint32_t i = 0; i < kPlaced; i += 37) ASSERT_EQ(look(i).id, pool_id(1, i));
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(look(1'000'000 + i), PoolHit());
}

TEST_F(ExactPoolIndexTest, ChunksInOrderCostOneTableForAContainer) {
  place(1, 0, kPlaced);
  ASSERT_TRUE(index_->save(containers_.live()));
  open();
  for (std::uint32_t i = 0; i < kPlaced; ++i) ASSERT_EQ(look(i).id, pool_id(1, i));
  // An error of a newer run's filter costs a table for that chunk.
  EXPECT_LE(containers_.tables_read, kPlaced / PoolContainers::kContainerChunks + kPlaced / 50);
}

TEST_F(ExactPoolIndexTest, FullDiskLosesNoEntryOfASave) {
  place(1, 0, 500);
  const Fingerprint elsewhere = random_fingerprint(9000);
  index_->stored_in_series(kStream, SeriesId{3}, {&elsewhere, 1});
  files_.faults.disk_full = true;
  EXPECT_FALSE(index_->save(containers_.live()));
  EXPECT_EQ(look(7).id, pool_id(1, 7));
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns());
  files_.faults.disk_full = false;
  ASSERT_TRUE(index_->save(containers_.live()));
  open();
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns());
  EXPECT_EQ(look(7).id, pool_id(1, 7));
  EXPECT_EQ(look(9000).elsewhere, SeriesId{3});
}

TEST_F(ExactPoolIndexTest, ChunksThatAFullDiskLostAreMissing) {
  files_.faults.disk_full = true;
  place(1, 0, kPlaced);
  files_.faults.disk_full = false;
  const auto missing = index_->missing(containers_.live());
  EXPECT_NE(missing.size(), 0U) << "the table does not fit into the memory";
  index_->add_missing(missing);
  for (std::uint32_t i = 0; i < kPlaced; i += 7) ASSERT_EQ(look(i).id, pool_id(1, i));
}

TEST_F(ExactPoolIndexTest, DamagedRunIsMissingUntilItIsAddedAgain) {
  place(1, 0, kPlaced);
  ASSERT_TRUE(index_->save(containers_.live()));
  for (const auto& path : run_paths()) {
    const auto file = std::move(*files_.open(path, io::OpenMode::kReadWrite));
    for (std::uint64_t at = kBlockBytes; at + kBlockBytes < *file->size(); at += 5 * kBlockBytes) {
      const auto byte = std::byte{0x5a};
      ASSERT_TRUE(file->write_at(at + 7, {&byte, 1}));
    }
  }
  open();
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns()) << "no entry was read yet";
  for (std::uint32_t i = 0; i < kPlaced; i += 7) {
    const auto hit = look(i);
    if (hit.id) {
      ASSERT_EQ(hit.id, pool_id(1, i));
    }
  }
  const auto missing = index_->missing(containers_.live());
  EXPECT_EQ(missing.size(), kPlaced);
  index_->add_missing(missing);
  for (std::uint32_t i = 0; i < kPlaced; ++i) ASSERT_EQ(look(i).id, pool_id(1, i));
  ASSERT_TRUE(index_->save(containers_.live()));
  open();
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns());
  for (std::uint32_t i = 0; i < kPlaced; i += 7) ASSERT_EQ(look(i).id, pool_id(1, i));
}

// Saves the index as its owner does. Returns the first id for which it asked.
class ExactPoolIndexSaves : public ExactPoolIndexTest {
 protected:
  ChunkId save(std::uint32_t complete_below) {
    ChunkId lowest{~std::uint64_t{0}};
    PoolChunks chunks;
    chunks.complete_below = pool_id(complete_below, 0).birth();
    chunks.from = [&](ChunkId from) -> Result<base::IdRuns> {
      lowest = std::min(lowest, from);
      std::vector<base::IdRun> runs;
      const auto live = containers_.live();
      for (const auto& run : live.runs()) {
        if (run.first >= from) runs.push_back(run);
      }
      return base::IdRuns::from(std::move(runs));
    };
    EXPECT_TRUE(index_->save(chunks));
    return lowest;
  }
};

TEST_F(ExactPoolIndexSaves, AskForTheChunksSinceTheLastOne) {
  EXPECT_EQ(index_->saved_until(), ChunkId{});
  place(1, 0, kPlaced);
  EXPECT_EQ(save(2), ChunkId{});
  EXPECT_EQ(index_->saved_until(), pool_id(2, 0));
  open();
  EXPECT_EQ(index_->saved_until(), pool_id(2, 0));
  for (std::uint32_t birth = 2; birth < 30; ++birth) {
    place(birth, 10'000 * birth, 10);
    EXPECT_GE(save(birth + 1), pool_id(2, 0)) << "a small run is merged with small ones";
  }
  open();
  EXPECT_EQ(index_->saved_until(), pool_id(30, 0));
  EXPECT_EQ(index_->missing(containers_.live()), base::IdRuns());
  for (std::uint32_t i = 0; i < kPlaced; i += 37) ASSERT_EQ(look(i).id, pool_id(1, i));
  for (std::uint32_t birth = 2; birth < 30; ++birth) {
    ASSERT_EQ(look(10'000 * birth + 3).id, pool_id(birth, 3));
  }
}

TEST_F(ExactPoolIndexSaves, NoteNothingThatIsMissing) {
  place(1, 0, 100);
  containers_.store(pool_id(2, 0), 5000);  // The index was not told.
  place(3, 200, 100);
  save(4);
  EXPECT_EQ(index_->saved_until(), pool_id(2, 0));
  index_->add_missing(index_->missing(containers_.live()));
  save(4);
  EXPECT_EQ(index_->saved_until(), pool_id(4, 0));
  EXPECT_EQ(look(5000).id, pool_id(2, 0));
}

TEST_F(ExactPoolIndexSaves, AskForAllChunksAfterADeletionOrDamage) {
  place(1, 0, kPlaced);
  save(2);
  const auto gone = base::IdRuns::from({{pool_id(1, 0), kPlaced - 128}});
  containers_.free(gone);
  index_->forget(gone);
  EXPECT_EQ(save(2), ChunkId{});
  EXPECT_EQ(index_->size(), 128U);
  const auto path = run_paths().front();
  ASSERT_TRUE(files_.remove(path));
  open();
  EXPECT_EQ(index_->saved_until(), ChunkId{}) << "a run is lost";
  index_->add_missing(index_->missing(containers_.live()));
  EXPECT_EQ(look(kPlaced - 1).id, pool_id(1, kPlaced - 1));
  save(2);
  EXPECT_EQ(index_->saved_until(), pool_id(2, 0));
}

TEST_F(ExactPoolIndexTest, FreedChunksLeaveTheFilesAndMarkersStay) {
  std::vector<Fingerprint> elsewhere;
  for (std::uint64_t i = 0; i < 15000; ++i) elsewhere.push_back(random_fingerprint(100'000 + i));
  index_->stored_in_series(kStream, SeriesId{3}, elsewhere);
  place(1, 0, kPlaced);
  ASSERT_TRUE(index_->save(containers_.live()));
  const auto gone = base::IdRuns::from({{pool_id(1, 0), kPlaced - 128}});
  containers_.free(gone);
  index_->forget(gone);
  ASSERT_TRUE(index_->save(containers_.live()));
  EXPECT_EQ(index_->size(), elsewhere.size() + 128);
  EXPECT_EQ(run_paths().size(), 1U) << "files of merged runs are removed";
  open();
  for (std::uint64_t i = 0; i < 15000; i += 7) EXPECT_EQ(look(100'000 + i).elsewhere, SeriesId{3});
  EXPECT_EQ(look(kPlaced - 1).id, pool_id(1, kPlaced - 1));
  EXPECT_EQ(look(0), PoolHit());
}

/// Calls a function before each read.
class CallingContainers final : public StoredFingerprints {
 public:
  bool around(ChunkId id, const Visit& visit) override {
    if (before) before();
    return chunks.around(id, visit);
  }
  PoolContainers chunks;
  std::function<void()> before;
};

TEST_F(ExactPoolIndexTest, NoLockIsHeldWhileAContainerIsRead) {
  CallingContainers containers;
  const auto index = ExactPoolIndex::open(pool_index_folder(files_, "/other"), containers);
  containers.chunks.store(pool_id(1, 0), 5);
  const PlacedChunk chunk{random_fingerprint(5), pool_id(1, 0)};
  int calls = 0;
  containers.before = [&] {
    ++calls;
    index->placed(kStream, {&chunk, 1});
    ASSERT_TRUE(index->save(containers.chunks.live()));
    EXPECT_NE(index->memory_bytes(), 0U);
  };
  index->placed(kStream, {&chunk, 1});
  PoolHit hit;
  index->lookup(kStream, {&chunk.fingerprint, 1}, {&hit, 1});
  EXPECT_EQ(hit.id, chunk.id);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace varve::index
