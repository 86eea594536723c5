// SPDX-License-Identifier: Apache-2.0
// Making duplicates in the pool aliases.
#include "layout/post_pass.h"

#include "pool_store_fixture.h"

namespace varve::layout {
namespace {

class PostPassTest : public PoolStoreTest {
 protected:
  // Stores chunks with these seeds in one stream and container, for a version that uses them all.
  std::vector<ChunkId> store_seeds(const PoolOwner& owner,
                                   const std::vector<std::uint64_t>& seeds) {
    const auto stream = must(pool_->start_stream(owner));
    std::vector<ChunkId> ids;
    for (const auto seed : seeds) ids.push_back(must(place(*stream, seed)));
    must(stream->sync());
    seal(owner, ids);
    return ids;
  }
  static std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t count) {
    std::vector<std::uint64_t> seeds;
    for (std::uint64_t i = 0; i < count; ++i) seeds.push_back(first + i);
    return seeds;
  }
  static std::vector<std::uint64_t> joined(std::vector<std::uint64_t> a,
                                           const std::vector<std::uint64_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  std::uint32_t users_of(ContainerNumber container) {
    return must(catalog::find_pool_users(must(meta::ReadTxn::begin(catalog_)), container));
  }
  std::vector<catalog::AliasRecord> aliases() {
    std::vector<catalog::AliasRecord> all;
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    must(catalog::for_each_alias(txn, [&](const catalog::AliasRecord& one) -> Result<bool> {
      all.push_back(one);
      return true;
    }));
    return all;
  }
  std::vector<format::AliasRun> in_files() {
    std::vector<format::AliasRun> all;
    const store::FolderPath folder{&files_, "/r/pool"};
    for (const auto number : must(store::list_alias_files(folder))) {
      EXPECT_EQ(must(store::read_alias_file(folder, number,
                                            [&](const auto&, const auto& one) -> Result<void> {
                                              all.push_back(one.run);
                                              return {};
                                            })),
                "");
    }
    return all;
  }
  void tidy() {
    must(tidy_alias_files(catalog_, pool_->chunks(), {&files_, "/r/pool"}, std::nullopt));
  }
};

TEST_F(PostPassTest, DuplicatesBecomeAliasesOfTheOlderChunks) {
  const auto old = store_seeds(kOne, range(0, 20));
  const auto young = store_seeds(kTwo, joined(range(100, 5), range(5, 12)));
  const auto before = stored_bytes();
  const auto passed = must(try_pass());
  EXPECT_TRUE(passed.finished);
  EXPECT_EQ(passed.aliases, 12U);
  EXPECT_LT(stored_bytes(), before);
  const auto all = aliases();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].run.first, young[5]);
  EXPECT_EQ(all[0].run.target, old[5]);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 5; i < 17; ++i) bytes += chunk(i).size();
  EXPECT_EQ(all[0].raw_bytes, bytes);
  EXPECT_EQ(in_files(), std::vector{all[0].run});
  expect_whole(old);
  expect_whole(young);
  EXPECT_EQ(users_of(container_of(old[0])), 2U);
  EXPECT_EQ(container_of(young[5]), container_of(old[5]));
  EXPECT_EQ(must(try_pass()).aliases, 0U) << "a second pass finds nothing";
  restart();
  expect_whole(young);
}

TEST_F(PostPassTest, TargetLivesUntilItsAliasGoes) {
  const auto old = store_seeds(kOne, range(0, 20));
  const auto young = store_seeds(kTwo, range(0, 20));
  ASSERT_EQ(must(try_pass()).aliases, 20U);
  EXPECT_EQ(remove({kOne}).bytes, 0U) << "the aliases need the chunks";
  expect_whole(young);
  restart();
  expect_whole(young);
  EXPECT_GT(remove({kTwo}).bytes, 0U);
  expect_gone(young);
  expect_gone(old);
  tidy();
  EXPECT_TRUE(aliases().empty()) << "aliases that lead nowhere go";
  EXPECT_EQ(stored_bytes(), 0U);
}

TEST_F(PostPassTest, MergingKeepsTheTargetsOfAliases) {
  const auto old = store_seeds(kOne, range(0, 20));
  const auto young = store_seeds(kTwo, joined(range(3, 2), range(200, 30)));
  ASSERT_EQ(must(try_pass(1, 2)).aliases, 2U);
  remove({kOne});
  const auto merged = must(try_merge());
  EXPECT_EQ(merged.dropped.size(), 18U);
  expect_whole(young);
  expect_gone({old[0], old[5]});
  EXPECT_EQ(users_of(container_of(young[0])), 1U);
  remove({kTwo});
  tidy();
  EXPECT_EQ(stored_bytes(), 0U);
}

TEST_F(PostPassTest, ContainerOfAliasesAndTargetsIsWrittenAgainAndNoAliasLeadsToAnother) {
  const auto first = store_seeds(kOne, range(0, 10));
  const auto second = store_seeds(kTwo, joined(range(0, 10), range(100, 10)));
  const auto third = store_seeds(kThree, joined(range(100, 10), range(0, 10)));
  ASSERT_EQ(must(try_pass()).aliases, 30U);
  for (const auto& one : aliases()) {
    EXPECT_TRUE(one.run.target == first[0] || one.run.target == second[10]);
  }
  for (const auto* ids : {&first, &second, &third}) expect_whole(*ids);
  remove({kTwo});
  for (const auto* ids : {&first, &third}) expect_whole(*ids);
  remove({kOne});
  expect_whole(third);
  remove({kThree});
  tidy();
  EXPECT_EQ(stored_bytes(), 0U);
}

// The second pass finds an older copy of a chunk that is a target already.
TEST_F(PostPassTest, TargetOfAnAliasNeverBecomesOne) {
  const auto first = store_seeds(kOne, {0, 500, 1, 501, 2, 502, 3, 503});
  const auto second = store_seeds(kTwo, range(0, 4));
  const auto third = store_seeds(kThree, range(0, 4));
  ASSERT_EQ(must(try_pass(1, 4)).aliases, 4U) << "the chunks of the first do not follow each other";
  ASSERT_EQ(aliases().front().run.target, second[0]);
  EXPECT_EQ(must(try_pass(1, 1)).aliases, 0U);
  for (const auto* ids : {&first, &second, &third}) expect_whole(*ids);
}

// Of a content with many copies, the pass finds the one beside the target of the chunk before.
TEST_F(PostPassTest, RunGoesOnWhereAChunkHasManyCopies) {
  const auto first = store_seeds(kOne, joined({7, 8, 9}, {0, 7, 1, 8, 2, 9, 3, 7, 4}));
  const auto second = store_seeds(kTwo, joined({9, 8, 7}, {0, 7, 1, 8, 2, 9, 3, 7, 4}));
  ASSERT_EQ(must(try_pass(1, 6)).aliases, 9U);
  ASSERT_EQ(aliases().size(), 1U);
  EXPECT_EQ(aliases().front().run.target, first[3]);
  expect_whole(first);
  expect_whole(second);
}

TEST_F(PostPassTest, ShortRunsStay) {
  store_seeds(kOne, range(0, 20));
  const auto young = store_seeds(kTwo, joined(range(0, 7), range(300, 3)));
  EXPECT_EQ(must(try_pass(1, 8)).aliases, 0U);
  EXPECT_EQ(must(try_pass(1, 7)).aliases, 7U);
  expect_whole(young);
}

TEST_F(PostPassTest, ContainerWithFewDuplicatesStays) {
  store_seeds(kOne, range(0, 4));
  store_seeds(kTwo, joined(range(0, 4), range(300, 40)));
  EXPECT_EQ(must(try_pass(200)).aliases, 0U);
  EXPECT_TRUE(in_files().empty());
  EXPECT_EQ(must(try_pass(50)).aliases, 4U);
}

TEST_F(PostPassTest, KeptChunksStayAndMayBeTargets) {
  const auto old = store_seeds(kOne, range(0, 8));
  const auto young = store_seeds(kTwo, range(0, 8));
  kept_ = base::IdRuns::from({{young[0], 8}});
  EXPECT_EQ(must(try_pass()).aliases, 0U);
}

TEST_F(PostPassTest, PinnedContainerStays) {
  store_seeds(kOne, range(0, 8));
  const auto young = store_seeds(kTwo, range(0, 8));
  ASSERT_TRUE(pool_->pin(kThree, container_of(young[0])));
  EXPECT_EQ(must(try_pass()).aliases, 0U);
  must(end(kThree));
  EXPECT_EQ(must(try_pass()).aliases, 8U);
}

TEST_F(PostPassTest, OpenVersionThatPinsTheTargetOfAnAliasHoldsIt) {
  store_seeds(kOne, range(0, 8));
  const auto young = store_seeds(kTwo, range(0, 8));
  must(try_pass());
  ASSERT_TRUE(pool_->pin(kThree, container_of(young[0])));
  remove({kOne, kTwo});
  expect_whole(young);
  seal(kThree, young);
  expect_whole(young);
  remove({kThree});
  expect_gone(young);
}

TEST_F(PostPassTest, DuplicateOfADamagedChunkKeepsItsBytes) {
  const auto old = store_seeds(kOne, range(0, 8));
  const auto young = store_seeds(kTwo, range(0, 8));
  const auto where = must(pool_->chunks().locate(old[3]));
  const auto header = must(pool_->chunks().header(where.container));
  const auto place = must(pool_->chunks().place_of(where.container));
  const auto path = "/r/pool/" + store::segment_path(static_cast<SegmentNumber>(place >> 32));
  const auto file = must(files_.open(path, io::OpenMode::kReadWrite));
  const auto at = header->header_bytes + header->frames[header->chunks[3].frame].offset +
                  header->chunks[3].frame_offset;
  std::byte one{};
  must(file->read_at(at, std::span(&one, 1)));
  one = ~one;
  must(file->write_at(at, std::span(&one, 1)));
  must(file->sync());
  must(try_pass());
  expect_whole({young[3]});
  expect_whole(young);
}

TEST_F(PostPassTest, StoppedPassLeavesWholeSteps) {
  std::vector<std::vector<ChunkId>> all;
  std::vector<PoolOwner> owners;
  for (std::uint32_t i = 1; i <= 6; ++i) {
    owners.push_back({SeriesId{7}, VersionNumber{i}});
    all.push_back(store_seeds(owners.back(), range(0, 30)));
  }
  for (int steps = 0; steps < 30; ++steps) {
    int left = 8;
    const auto passed = must(try_pass(1, 1, [&] { return left-- == 0; }));
    for (const auto& ids : all) expect_whole(ids);
    if (passed.finished) break;
  }
  EXPECT_TRUE(must(try_pass()).finished);
  const auto one = stored_bytes();
  remove({owners.begin() + 1, owners.end()});
  EXPECT_EQ(stored_bytes(), one) << "all but the first version were aliases";
}

// More records than a bucket is meant for do not matter: they are sorted in files.
TEST_F(PostPassTest, SortingInFilesGivesTheSameOrder) {
  const store::FolderPath folder{&files_, "/r"};
  std::mt19937_64 random(3);
  std::vector<store::SortRecord> expected;
  {
    store::RecordBuckets buckets(folder, 4, 10);
    for (int i = 0; i < 20000; ++i) {
      const store::SortRecord record{random(), random() % 5, random()};
      expected.push_back(record);
      must(buckets.add(static_cast<std::uint32_t>(record.a >> 62), record));
    }
    std::sort(expected.begin(), expected.end());
    std::vector<store::SortRecord> found;
    for (std::uint32_t bucket = 0; bucket < 4; ++bucket) {
      if (bucket == 3) break;
      const auto part = must(buckets.take(bucket));
      found.insert(found.end(), part.begin(), part.end());
    }
    ASSERT_EQ(must(files_.list("/r")).size(), 2U) << "the pool, and the last bucket";
    const auto part = must(buckets.take(3));
    found.insert(found.end(), part.begin(), part.end());
    EXPECT_TRUE(found == expected);
    must(buckets.add(1, expected[0]));
    for (int i = 0; i < 2000; ++i) must(buckets.add(1, expected[0]));
  }
  EXPECT_EQ(must(files_.list("/r")).size(), 1U) << "files for sorting stay";
}

TEST_F(PostPassTest, FilesForSortingOfACrashedPassAreRemoved) {
  for (const char* name : {"sort-00000003.tmp", "aliases-00000001.als.tmp", "other.tmp"}) {
    must(files_.open(std::string("/r/pool/") + name, io::OpenMode::kReadWrite));
  }
  must(try_pass());
  EXPECT_FALSE(must(files_.exists("/r/pool/sort-00000003.tmp")));
  EXPECT_FALSE(must(files_.exists("/r/pool/aliases-00000001.als.tmp")));
  EXPECT_TRUE(must(files_.exists("/r/pool/other.tmp")));
}

// The disk fails at every change of a pass, and loses what was not synced.
TEST_F(PostPassTest, CrashAtAnyChangeKeepsAllVersions) {
  bool broken = true;
  std::uint64_t moments = 0;
  for (std::uint64_t at = 1; broken; ++at) {
    SCOPED_TRACE("change " + std::to_string(at));
    const auto base = at * 1000;
    const auto first = store_seeds(kOne, joined(range(base, 20), range(base + 700, 5)));
    const auto second = store_seeds(kTwo, joined(range(base + 10, 10), range(base + 800, 9)));
    const auto third = store_seeds(kThree, joined(range(base + 800, 9), range(base, 9)));
    files_.break_after(at);
    static_cast<void>(try_pass());
    static_cast<void>(tidy_alias_files(catalog_, pool_->chunks(), {&files_, "/r/pool"}, 0));
    broken = files_.broken();
    pool_.reset();
    files_.crash();
    must(try_restart());
    for (const auto* ids : {&first, &second, &third}) expect_whole(*ids);
    // Each alias of the catalog is in a file: the catalog may be lost next.
    const auto in_file = in_files();
    for (const auto& one : aliases()) {
      std::uint32_t found = 0;
      for (const auto& run : in_file) {
        for (std::uint32_t i = 0; i < one.run.count; ++i) {
          const auto id = one.run.first.plus(i);
          const auto skip = id.value - run.first.value;
          if (id >= run.first && skip < run.count && run.target.plus(skip) == one.stored(id)) {
            ++found;
          }
        }
      }
      EXPECT_GE(found, one.run.count);
    }
    ASSERT_TRUE(must(try_pass()).finished);
    for (const auto* ids : {&first, &second, &third}) expect_whole(*ids);
    must(try_remove({kTwo}));
    for (const auto* ids : {&first, &third}) expect_whole(*ids);
    must(try_remove({kOne, kThree}));
    must(tidy_alias_files(catalog_, pool_->chunks(), {&files_, "/r/pool"}, std::nullopt));
    must(pool_->sweep(must(pool_->unused())));
    ASSERT_EQ(must(files_.list("/r/pool/active")).size(), 0U);
    ++moments;
  }
  EXPECT_GT(moments, 10U);
  std::printf("%d moments\n", static_cast<int>(moments));
}

// Random versions with many duplicates, passes, merging and deletions.
TEST_F(PostPassTest, UsersAgreeWithTheVersionsAfterAnyHistory) {
  std::mt19937_64 random(11);
  std::map<PoolOwner, std::vector<ChunkId>> sealed;
  std::uint32_t made = 0;
  std::uint64_t made_aliases = 0;
  for (int step = 0; step < 200; ++step) {
    const auto kind = random() % 10;
    if (kind < 4) {
      const PoolOwner owner{SeriesId{1 + made % 3}, VersionNumber{++made}};
      const auto stream = must(pool_->start_stream(owner));
      std::vector<ChunkId> ids;
      for (auto n = 1 + random() % 3; n > 0; --n) {
        const auto first = random() % 60;
        for (std::uint64_t i = 0; i < 2 + random() % 12; ++i) {
          ids.push_back(must(place(*stream, first + i)));
        }
        must(stream->sync());
      }
      for (const auto& [other, others] : sealed) {
        for (const auto id : others) {
          if (random() % 8 != 0) continue;
          ASSERT_TRUE(pool_->pin(owner, container_of(id)));
          ids.push_back(id);
        }
      }
      if (random() % 6 == 0) {
        made_aliases += must(try_pass(static_cast<std::uint32_t>(1 + random() % 500))).aliases;
      }
      seal(owner, ids);
      sealed[owner] = ids;
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
    } else {
      made_aliases += must(try_pass(static_cast<std::uint32_t>(1 + random() % 600),
                                    static_cast<std::uint32_t>(1 + random() % 4)))
                          .aliases;
      if (random() % 3 == 0) tidy();
    }
    std::map<ContainerNumber, std::uint32_t> expected;
    for (const auto& [owner, ids] : sealed) {
      expect_whole(ids);
      std::map<ContainerNumber, std::uint64_t> used;
      for (const auto id : ids) used[container_of(id)];
      for (const auto& [container, bytes] : used) ++expected[container];
      std::vector<base::IdRun> runs;
      for (const auto id : ids) runs.push_back({id, 1});
      const auto txn = must(meta::ReadTxn::begin(catalog_));
      ASSERT_EQ(must(catalog::find_pool_use(txn, owner.series, owner.version)),
                must(catalog::pool_use_of(txn, base::IdRuns::from(runs))))
          << "step " << step;
    }
    std::map<ContainerNumber, std::uint32_t> recorded;
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    must(catalog::for_each_pool_users(
        txn, [&](ContainerNumber container, std::uint32_t users) -> Result<bool> {
          recorded[container] = users;
          return true;
        }));
    ASSERT_EQ(recorded, expected) << "step " << step;
    for (const auto& one : aliases()) {
      for (const auto& other : aliases()) {
        const bool leads =
            base::IdRuns::from({one.targets()}).overlaps({other.run.first, other.run.count});
        ASSERT_FALSE(leads) << "step " << step;
      }
    }
  }
  EXPECT_GT(made_aliases, 100U);
}

TEST_F(PostPassTest, ChunksInQuarantineAreNeitherAliasesNorTargets) {
  const auto lost = store_seeds(kOne, range(0, 8));
  const auto old = store_seeds(kTwo, range(0, 8));
  const auto young = store_seeds(kThree, range(0, 8));
  lost_ = base::IdRuns::from({{lost[0], 8}});
  EXPECT_EQ(must(try_pass()).aliases, 8U);
  const auto all = aliases();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].run.first, young[0]);
  EXPECT_EQ(all[0].run.target, old[0]);
}

TEST_F(PostPassTest, DamagedTargetsAreNotedAndKeepTheirCopies) {
  const auto old = store_seeds(kOne, range(0, 8));
  const auto young = store_seeds(kTwo, range(0, 8));
  damage(old[0]);
  const auto passed = must(try_pass());
  EXPECT_EQ(passed.aliases, 0U);
  EXPECT_EQ(passed.damaged, 1U);
  expect_whole(young);
  const auto found = damage_.take();
  ASSERT_TRUE(found.contains(kPoolStore));
  EXPECT_TRUE(found.at(kPoolStore).contains(old[0]));
  EXPECT_FALSE(found.at(kPoolStore).contains(young[0]));
}

}  // namespace
}  // namespace varve::layout
