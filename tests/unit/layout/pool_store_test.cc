// SPDX-License-Identifier: Apache-2.0
// The pool's containers: pins, users, deletion, crashes, and threads that race for one container.
#include "pool_store_fixture.h"

namespace varve::layout {
namespace {

TEST_F(PoolStoreTest, LastUserFreesAContainerToTheByte) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  seal(kTwo, {ids[1]});
  EXPECT_EQ(remove({kOne}).bytes, 0U);
  expect_whole(ids);
  const auto freed = remove({kTwo});
  EXPECT_GT(freed.bytes, 3000U);
  EXPECT_EQ(freed.chunks, 3U);
  EXPECT_EQ(stored_bytes(), 0U);
  expect_gone(ids);
}

TEST_F(PoolStoreTest, DeletingAllUsersAtOnceFreesAContainer) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  seal(kTwo, ids);
  EXPECT_GT(remove({kOne, kTwo}).bytes, 0U);
  EXPECT_EQ(stored_bytes(), 0U);
}

TEST_F(PoolStoreTest, PinnedContainerWaitsForItsVersion) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  EXPECT_TRUE(pool_->pin(kTwo, container_of(ids[0])));
  const auto freed = remove({kOne});
  EXPECT_EQ(freed.bytes, 0U);
  EXPECT_EQ(freed.waiting_bytes, chunk(100).size() + chunk(101).size() + chunk(102).size());
  expect_whole(ids);
  seal(kTwo, ids);
  expect_whole(ids);
  EXPECT_GT(remove({kTwo}).bytes, 0U);
}

TEST_F(PoolStoreTest, PinnedContainerIsFreedWithItsDroppedVersion) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  ASSERT_TRUE(pool_->pin(kTwo, container_of(ids[0])));
  ASSERT_TRUE(pool_->pin(kThree, container_of(ids[0])));
  remove({kOne});
  must(end(kTwo));
  expect_whole(ids);
  must(end(kThree));
  expect_gone(ids);
  EXPECT_EQ(stored_bytes(), 0U);
}

TEST_F(PoolStoreTest, NewContainersAreThoseOfTheirVersionOnly) {
  const auto kept = store(kOne, 1);
  const auto dropped = store(kTwo, 2);
  EXPECT_NE(kept[0].birth(), dropped[0].birth());
  must(end(kTwo));
  expect_gone(dropped);
  seal(kOne, kept);
  expect_whole(kept);
}

TEST_F(PoolStoreTest, RetiredContainerCannotBePinned) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  const auto container = container_of(ids[0]);
  {
    const PoolStore::Exclusive exclusive(*pool_);
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    const auto plan = must(pool_->plan_deletion(txn, {kOne}));
    ASSERT_EQ(plan.dying.size(), 1U);
    EXPECT_FALSE(pool_->pin(kTwo, container));
    pool_->keep(plan);  // Its commit failed.
  }
  EXPECT_TRUE(pool_->unpin(kTwo).empty());
  EXPECT_TRUE(pool_->pin(kTwo, container));
  EXPECT_EQ(remove({kOne}).bytes, 0U);
  must(end(kTwo));
  EXPECT_FALSE(pool_->pin(kThree, container));
  EXPECT_TRUE(pool_->unpin(kThree).empty());
}

TEST_F(PoolStoreTest, ForecastHoldsNobodyOff) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  EXPECT_GT(forecast({kOne}).bytes, 0U);
  EXPECT_TRUE(pool_->pin(kTwo, container_of(ids[0])));
  EXPECT_EQ(forecast({kOne}).bytes, 0U);
}

TEST_F(PoolStoreTest, VersionThatMayUseAnythingHoldsEverything) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  pool_->pin_all(kTwo);
  pool_->pin_all(kTwo);
  EXPECT_EQ(remove({kOne}).bytes, 0U);
  must(end(kTwo));
  must(pool_->sweep(must(pool_->unused())));
  EXPECT_EQ(stored_bytes(), 0U);
}

TEST_F(PoolStoreTest, TooFewUsersStopADeletion) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  seal(kTwo, ids);
  {
    auto txn = must(meta::WriteTxn::begin(catalog_));
    must(catalog::put_pool_users(txn, container_of(ids[0]), 1));
    must(txn.commit());
  }
  EXPECT_EQ(code_of(try_remove({kOne, kTwo})), ErrorCode::kCorrupt);
  expect_whole(ids);
  EXPECT_TRUE(pool_->pin(kThree, container_of(ids[0]))) << "the failed plan holds it off";
}

TEST_F(PoolStoreTest, NumbersAndBirthsAreNotGivenAgain) {
  const auto first = store(kOne, 1);
  const auto container = container_of(first[0]);
  must(end(kOne));
  expect_gone(first);
  restart();
  const auto second = store(kTwo, 2);
  EXPECT_GT(second[0].birth(), first[0].birth());
  EXPECT_GT(container_of(second[0]), container);
  EXPECT_TRUE(is_pool(container));
  EXPECT_TRUE(is_pool(second[0]));
}

TEST_F(PoolStoreTest, DroppedStreamLeavesNoFile) {
  const auto stream = must(pool_->start_stream(kOne));
  const auto synced = must(store(*stream, 1));
  must(place(*stream, 7));
  must(stream->flush());
  const auto files = stream->drop();
  EXPECT_EQ(files.size(), 1U);
  must(free_files(pool_->segments(), files));
  must(end(kOne));
  EXPECT_EQ(stored_bytes(), 0U);
}

TEST_F(PoolStoreTest, SettledPoolIsOpenedWithoutALookAtItsFiles) {
  const auto ids = store(kOne, 1);
  seal(kOne, ids);
  const auto stray =
      std::move(*files_.open("/r/pool/active/00ffffff.seg", io::OpenMode::kReadWrite));
  must(try_restart(true));
  EXPECT_TRUE(must(files_.exists("/r/pool/active/00ffffff.seg")));
  const auto more = store(kTwo, 2);
  EXPECT_NE(container_of(more[0]), container_of(ids[0]));
  must(try_restart(false));
  EXPECT_FALSE(must(files_.exists("/r/pool/active/00ffffff.seg")));
  EXPECT_EQ(container_of(more[0]), must(pool_->chunks().locate(more[0])).container);
}

TEST_F(PoolStoreTest, FilesThatNothingNamesAreLeftBehind) {
  EXPECT_FALSE(pool_->has_left_behind());
  seal(kOne, store(kOne, 1));
  EXPECT_FALSE(pool_->has_left_behind());
  {
    const auto stream = must(pool_->start_stream(kTwo));
    must(place(*stream, 7));
    must(stream->flush());
    EXPECT_TRUE(pool_->has_left_behind()) << "the container is not located";
    must(free_files(pool_->segments(), stream->drop()));
  }
  EXPECT_FALSE(pool_->has_left_behind());
  pool_->pin_all(kTwo);
  EXPECT_TRUE(pool_->has_left_behind()) << "its end does not tell what only it held";
}

TEST_F(PoolStoreTest, AFailedRemovalLeavesAFileBehind) {
  seal(kOne, store(kOne, 1));
  files_.break_after(1);
  static_cast<void>(try_remove({kOne}));
  files_.break_after(0);
  EXPECT_TRUE(pool_->has_left_behind());
  EXPECT_NE(stored_bytes(), 0U);
  restart();
  EXPECT_FALSE(pool_->has_left_behind());
  EXPECT_EQ(stored_bytes(), 0U);
}

TEST_F(PoolStoreTest, BirthsAreCompleteBelowThoseOfStreams) {
  const auto none = must(pool_->complete_below());
  auto first = must(pool_->start_stream(kOne));
  auto second = must(pool_->start_stream(kTwo));
  EXPECT_EQ(first->birth(), none);
  EXPECT_GT(second->birth(), first->birth());
  const auto last = second->birth();
  EXPECT_EQ(must(pool_->complete_below()), first->birth());
  first.reset();
  EXPECT_EQ(must(pool_->complete_below()), second->birth());
  second.reset();
  EXPECT_GT(must(pool_->complete_below()), last);
}

// Several threads of one version ask for a container that was freed. None of them may get it,
// also not while another one has begun to pin it.
TEST_F(PoolStoreTest, FreedContainerIsRefusedToAllThreadsOfAVersion) {
  std::atomic<int> granted{0};
  for (std::uint64_t round = 0; round < 150; ++round) {
    const auto ids = store(kOne, round, 1);
    const auto container = container_of(ids[0]);
    must(end(kOne));
    std::atomic<int> ready{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        for (int n = 0; n < 5; ++n) granted += pool_->pin(kTwo, container) ? 1 : 0;
      });
    }
    threads.clear();
    ASSERT_EQ(granted, 0) << "round " << round;
    EXPECT_TRUE(pool_->unpin(kTwo).empty());
  }
}

// One thread deletes the last user of a container while another pins it: either the pin is
// refused, or the container lives until the pin ends.
}  // namespace
}  // namespace varve::layout
