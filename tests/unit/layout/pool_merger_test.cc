// SPDX-License-Identifier: Apache-2.0
// Merging the pool's containers of which the versions use little.
#include "layout/pool_merger.h"

#include "pool_store_fixture.h"

namespace varve::layout {
namespace {

class PoolMergerTest : public PoolStoreTest {
 protected:
  // Stores chunks that fill several containers, in one stream, for a version that uses them all.
  std::vector<ChunkId> store_all(const PoolOwner& owner, std::uint64_t seed, int containers,
                                 int chunks = 20) {
    const auto stream = must(pool_->start_stream(owner));
    std::vector<ChunkId> ids;
    for (int i = 0; i < containers; ++i) {
      const auto more = must(store(*stream, seed + static_cast<std::uint64_t>(i), chunks));
      ids.insert(ids.end(), more.begin(), more.end());
    }
    seal(owner, ids);
    return ids;
  }
  static std::vector<ChunkId> every(const std::vector<ChunkId>& ids, std::size_t n,
                                    std::size_t from = 0) {
    std::vector<ChunkId> some;
    for (auto i = from; i < ids.size(); i += n) some.push_back(ids[i]);
    return some;
  }
  std::uint32_t users_of(ContainerNumber container) {
    return must(catalog::find_pool_users(must(meta::ReadTxn::begin(catalog_)), container));
  }
  // Inverts a byte of a file of the pool.
  void damage(SegmentNumber segment, std::uint64_t at) {
    const auto file =
        must(files_.open("/r/pool/" + store::segment_path(segment), io::OpenMode::kReadWrite));
    std::byte one{};
    must(file->read_at(at, std::span(&one, 1)));
    one = ~one;
    must(file->write_at(at, std::span(&one, 1)));
    must(file->sync());
  }
  std::set<ContainerNumber> containers_of(const std::vector<ChunkId>& ids) {
    std::set<ContainerNumber> found;
    for (const auto id : ids) found.insert(container_of(id));
    return found;
  }
};

TEST_F(PoolMergerTest, PutsWhatIsUsedOfSparseContainersIntoOne) {
  const auto ids = store_all(kOne, 1, 4);
  const auto used = every(ids, 5);
  seal(kTwo, used);
  remove({kOne});
  const auto before = stored_bytes();
  const auto merged = must(try_merge());
  EXPECT_TRUE(merged.finished);
  EXPECT_EQ(merged.dropped.size(), ids.size() - used.size());
  const auto containers = containers_of(used);
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(users_of(*containers.begin()), 1U);
  expect_whole(used);
  for (const auto id : ids) {
    const bool is_used = std::ranges::find(used, id) != used.end();
    if (!is_used) expect_gone({id});
  }
  EXPECT_LT(stored_bytes(), before / 3);
  EXPECT_GT(merged.bytes_before_freeing, before) << "the old files go last (O22)";
  restart();
  expect_whole(used);
  EXPECT_GT(remove({kTwo}).bytes, 0U);
  EXPECT_EQ(stored_bytes(), 0U);
}

// Else a crash would leave a new file, and a note that says there is none (O37).
TEST_F(PoolMergerTest, VoidsTheNoteBeforeTheFirstFile) {
  const auto ids = store_all(kOne, 1, 4);
  seal(kTwo, every(ids, 5));
  remove({kOne});
  const auto files = [this] { return must(files_.list("/r/pool/active")).size(); };
  const auto before = files();
  std::optional<std::size_t> at_first;
  catalog_.before_writes([&]() -> Result<void> {
    if (!at_first) at_first = files();
    return {};
  });
  must(try_merge());
  EXPECT_EQ(at_first, before);
  EXPECT_LT(files(), before);
  catalog_.before_writes({});
}

TEST_F(PoolMergerTest, LooksOnlyAfterADeletion) {
  const auto ids = store_all(kOne, 1, 1);
  seal(kTwo, {ids[0]});
  const auto before = stored_bytes();
  EXPECT_EQ(must(try_merge(1000)).dropped.size(), 0U);
  remove({kOne});
  restart();  // The note is in the catalog.
  EXPECT_EQ(must(try_merge()).dropped.size(), ids.size() - 1);
  EXPECT_LT(stored_bytes(), before);
  EXPECT_FALSE(must(catalog::pool_merging_is_due(must(meta::ReadTxn::begin(catalog_)))));
}

TEST_F(PoolMergerTest, VersionsThatUseDifferentChunksKeepAContainer) {
  const auto ids = store_all(kOne, 1, 1);
  seal(kTwo, every(ids, 5));
  seal(kThree, every(ids, 5, 1));  // 20 % of it each, 40 % together.
  remove({kOne});
  const auto container = container_of(ids[0]);
  EXPECT_EQ(must(try_merge()).dropped.size(), 0U);
  EXPECT_EQ(container_of(ids[0]), container);
  EXPECT_EQ(must(try_merge(500)).finished, true);  // Nothing was deleted since.
  EXPECT_EQ(container_of(ids[0]), container);
}

TEST_F(PoolMergerTest, PinnedContainerStays) {
  const auto ids = store_all(kOne, 1, 2);
  const auto used = every(ids, 10);
  seal(kTwo, used);
  remove({kOne});
  const auto pinned = container_of(used.front());
  ASSERT_TRUE(pool_->pin(kThree, pinned));
  must(try_merge());
  EXPECT_EQ(container_of(used.front()), pinned);
  EXPECT_NE(container_of(used.back()), container_of(ids.front()));
  expect_whole({ids.begin(), ids.begin() + 20});
  expect_whole(used);
}

TEST_F(PoolMergerTest, RetiredContainersCannotBePinnedUntilTheStepEnds) {
  const auto ids = store_all(kOne, 1, 1);
  seal(kTwo, {ids[0]});
  remove({kOne});
  const auto old = container_of(ids[0]);
  {
    const PoolStore::Exclusive exclusive(*pool_);
    ASSERT_EQ(pool_->retire({old}).size(), 1U);
    EXPECT_FALSE(pool_->pin(kThree, old));
    EXPECT_TRUE(pool_->retire({old}).empty());
    pool_->release({old});
  }
  EXPECT_TRUE(pool_->pin(kThree, old));
  EXPECT_EQ(must(try_merge()).dropped.size(), 0U);
  must(end(kThree));
}

TEST_F(PoolMergerTest, ChunksWithTheSameUsersAreNeighbours) {
  const auto ids = store_all(kOne, 1, 3, 40);
  const auto twos = every(ids, 8);
  const auto threes = every(ids, 8, 4);
  auto both = every(ids, 24, 1);
  auto of_two = twos;
  of_two.insert(of_two.end(), both.begin(), both.end());
  auto of_three = threes;
  of_three.insert(of_three.end(), both.begin(), both.end());
  seal(kTwo, of_two);
  seal(kThree, of_three);
  remove({kOne});
  must(try_merge(400));
  expect_whole(of_two);
  expect_whole(of_three);
  // In the container's order, each set of users is one piece.
  const auto header = must(pool_->chunks().header(container_of(twos[0])));
  std::vector<int> pieces;
  for (const auto& chunk : header->chunks) {
    const bool second = std::ranges::find(of_two, chunk.id) != of_two.end();
    const bool third = std::ranges::find(of_three, chunk.id) != of_three.end();
    const int users = (second ? 1 : 0) + (third ? 2 : 0);
    if (pieces.empty() || pieces.back() != users) pieces.push_back(users);
  }
  EXPECT_EQ(pieces.size(), 3U);
}

TEST_F(PoolMergerTest, WrongUsersMergeNothing) {
  const auto ids = store_all(kOne, 1, 1);
  seal(kTwo, {ids[0]});
  seal(kThree, {ids[1]});
  remove({kOne});
  {
    auto txn = must(meta::WriteTxn::begin(catalog_));
    must(catalog::put_pool_use(txn, kThree.series, kThree.version, {}));
    must(txn.commit());
  }
  EXPECT_EQ(code_of(try_merge()), ErrorCode::kCorrupt);
  expect_whole(ids);
  EXPECT_TRUE(pool_->pin(kOne, container_of(ids[0])));
}

// Chunks of another birth would lose their user.
TEST_F(PoolMergerTest, ContainerThatHasMoreThanItsBirthIsLeft) {
  const auto ids = store_all(kOne, 1, 1);
  seal(kTwo, {ids[0]});
  remove({kOne});
  {
    auto txn = must(meta::WriteTxn::begin(catalog_));
    auto record = *must(catalog::find_container(txn, kPoolStore, container_of(ids[0])));
    record.raw_bytes += 1000;
    record.live_bytes += 1000;
    must(catalog::put_container(txn, kPoolStore, record));
    must(txn.commit());
  }
  EXPECT_EQ(code_of(try_merge()), ErrorCode::kCorrupt);
  expect_whole(ids);
}

TEST_F(PoolMergerTest, StoppedMergingGoesOnLater) {
  const auto ids = store_all(kOne, 1, 1);
  seal(kTwo, {ids[0]});
  remove({kOne});
  PoolMergerParts parts;
  parts.pool = pool_.get();
  parts.catalog = &catalog_;
  parts.stop = [] { return true; };
  EXPECT_FALSE(must(PoolMerger(parts).run()));
  expect_whole(ids);
  EXPECT_EQ(must(try_merge()).dropped.size(), ids.size() - 1);
}

TEST_F(PoolMergerTest, DamagedChunkStaysAndTheOthersMove) {
  const auto ids = store_all(kOne, 1, 2, 30);
  const std::vector<ChunkId> used{ids[0], ids[29], ids[30], ids[59]};
  seal(kTwo, used);
  remove({kOne});
  const auto old = container_of(ids[0]);
  std::uint64_t at = 0;
  SegmentNumber segment{};
  {
    const auto record =
        must(catalog::find_container(must(meta::ReadTxn::begin(catalog_)), kPoolStore, old));
    at = record->offset + record->header_bytes + 10;
    segment = record->segment;
  }
  damage(segment, at);
  restart();
  const auto merged = must(try_merge());
  EXPECT_TRUE(merged.finished);
  EXPECT_EQ(container_of(ids[0]), old);
  EXPECT_EQ(users_of(old), 1U);
  EXPECT_NE(container_of(ids[59]), old);
  expect_whole({ids[30], ids[59]});
}

TEST_F(PoolMergerTest, FailingDiskMergesNothing) {
  const auto ids = store_all(kOne, 1, 2);
  seal(kTwo, every(ids, 10));
  remove({kOne});
  files_.break_after(1);
  EXPECT_FALSE(try_merge().has_value());
  pool_.reset();
  files_.crash();
  restart();
  expect_whole(ids);
  must(try_merge());
  expect_whole(every(ids, 10));
}

}  // namespace
}  // namespace varve::layout
