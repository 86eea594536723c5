// SPDX-License-Identifier: Apache-2.0
// The pool after threads that race for a container, random histories and crashes.
#include "pool_store_fixture.h"

namespace varve::layout {
namespace {

TEST_F(PoolStoreTest, PinAndDeletionRace) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (std::uint64_t round = 0; round < 150; ++round) {
    const auto ids = store(kOne, round);
    seal(kOne, ids);
    const auto container = container_of(ids[0]);
    std::atomic<bool> pinned{false};
    {
      const auto pause = random() % 3000;
      std::jthread deletes([&] { must(try_remove({kOne})); });
      std::jthread pins([&] {
        for (std::uint64_t i = 0; i < pause; ++i)
          std::atomic_signal_fence(std::memory_order_seq_cst);
        pinned = pool_->pin(kTwo, container);
      });
    }
    if (pinned) {
      expect_whole(ids);
      if (random() % 2 == 0) {
        seal(kTwo, ids);
        expect_whole(ids);
        must(try_remove({kTwo}));
      } else {
        must(end(kTwo));
      }
    } else {
      ++refused;
    }
    expect_gone(ids);
    ASSERT_EQ(stored_bytes(), 0U);
    EXPECT_TRUE(pool_->unpin(kTwo).empty());
  }
  std::printf("%d of 150 pins were refused\n", refused);
}

// Random versions that use each other's containers, against the set of the containers of each.
TEST_F(PoolStoreTest, UsersAgreeWithTheVersionsAfterAnyHistory) {
  std::mt19937_64 random(5);
  std::map<PoolOwner, std::vector<ChunkId>> sealed;
  std::uint32_t made = 0;
  for (int step = 0; step < 250; ++step) {
    const auto kind = random() % 9;
    if (kind < 4) {
      const PoolOwner owner{SeriesId{1 + made % 3}, VersionNumber{++made}};
      const auto stream = must(pool_->start_stream(owner));
      std::vector<ChunkId> ids;
      for (auto n = random() % 4; n > 0; --n) {
        const auto more = must(store(*stream, made * 10 + n, 1 + static_cast<int>(random() % 3)));
        ids.insert(ids.end(), more.begin(), more.end());
      }
      for (const auto& [other, others] : sealed) {
        for (const auto id : others) {
          if (random() % 6 != 0) continue;
          ASSERT_TRUE(pool_->pin(owner, container_of(id)));
          ids.push_back(id);
        }
      }
      if (kind == 0) {
        must(end(owner));
      } else {
        seal(owner, ids);
        sealed[owner] = ids;
      }
    } else if (kind < 6) {
      std::vector<PoolOwner> gone;
      for (const auto& [owner, ids] : sealed) {
        if (random() % 4 == 0) gone.push_back(owner);
      }
      remove(gone);
      for (const auto& owner : gone) sealed.erase(owner);
    } else if (kind == 6) {
      restart();
    } else if (kind == 7) {
      must(try_merge(static_cast<std::uint32_t>(random() % 1000)));
    }
    std::map<ContainerNumber, std::uint32_t> expected;
    for (const auto& [owner, ids] : sealed) {
      expect_whole(ids);
      std::set<ContainerNumber> used;
      for (const auto id : ids) used.insert(container_of(id));
      for (const auto container : used) ++expected[container];
    }
    std::map<ContainerNumber, std::uint32_t> recorded;
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    must(catalog::for_each_pool_users(
        txn, [&](ContainerNumber container, std::uint32_t users) -> Result<bool> {
          recorded[container] = users;
          return true;
        }));
    ASSERT_EQ(recorded, expected) << "step " << step;
    std::uint64_t bytes = 0;
    std::size_t containers = 0;
    must(catalog::for_each_container(txn, kPoolStore,
                                     [&](const format::ContainerRecord& record) -> Result<bool> {
                                       bytes += record.end();
                                       ++containers;
                                       return true;
                                     }));
    ASSERT_EQ(containers, expected.size()) << "step " << step;
    ASSERT_EQ(bytes, stored_bytes()) << "step " << step;
  }
}

// The disk fails at every change of a history, and loses what was not synced. Sealed versions are
// whole, and nothing is left of the others.
TEST_F(PoolStoreTest, CrashAtAnyChangeKeepsSealedVersions) {
  bool broken = true;
  std::uint64_t moments = 0;
  for (std::uint64_t at = 1; broken; ++at) {
    SCOPED_TRACE("change " + std::to_string(at));
    std::map<PoolOwner, std::vector<ChunkId>> sealed;
    files_.break_after(at);
    const auto live = [&]() -> Result<void> {
      VARVE_TRY_ASSIGN(const auto one, pool_->start_stream(kOne));
      VARVE_TRY_ASSIGN(const auto first, store(*one, at * 10 + 1));
      VARVE_TRY_ASSIGN(const auto second, store(*one, at * 10 + 2));
      VARVE_TRY(try_seal(kOne, {first[0], second[1]}));
      sealed[kOne] = {first[0], second[1]};
      VARVE_TRY_ASSIGN(const auto two, pool_->start_stream(kTwo));
      VARVE_TRY_ASSIGN(const auto third, store(*two, at * 10 + 3));
      EXPECT_TRUE(pool_->pin(kTwo, container_of(first[0])));
      sealed.erase(kOne);  // From here on it may go.
      VARVE_TRY(try_remove({kOne}));
      VARVE_TRY(try_seal(kTwo, {third[0], first[0]}));
      sealed[kTwo] = {third[0], first[0]};
      VARVE_TRY(try_merge(900));
      VARVE_TRY_ASSIGN(const auto three, pool_->start_stream(kThree));
      VARVE_TRY(store(*three, at * 10 + 4));
      VARVE_TRY_ASSIGN(const auto waiting, place(*three, at * 10 + 5));
      static_cast<void>(waiting);
      VARVE_TRY(three->flush());
      auto dropped = free_files(pool_->segments(), three->drop());
      VARVE_TRY(end(kThree));
      return dropped;
    };
    static_cast<void>(live());
    broken = files_.broken();
    pool_.reset();
    files_.crash();
    must(try_restart());
    for (const auto& [owner, ids] : sealed) expect_whole(ids);
    must(pool_->sweep(must(pool_->unused())));
    for (const auto& [owner, ids] : sealed) expect_whole(ids);
    std::vector<PoolOwner> all;
    {
      const auto txn = must(meta::ReadTxn::begin(catalog_));
      must(catalog::for_each_pool_use(txn,
                                      [&](SeriesId series, VersionNumber number,
                                          const std::vector<catalog::PoolUse>&) -> Result<bool> {
                                        all.push_back({series, number});
                                        return true;
                                      }));
    }
    must(try_remove(all));
    ASSERT_EQ(stored_bytes(), 0U);
    ++moments;
  }
  EXPECT_GT(moments, 10U);
}

}  // namespace
}  // namespace varve::layout
