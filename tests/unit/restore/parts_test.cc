// SPDX-License-Identifier: Apache-2.0
// Tests the small parts of the read path: cache, area, index, locator, pool.
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "restore/assembly_area.h"
#include "restore/buffer_pool.h"
#include "restore/chunk_cache.h"
#include "restore/recipe_index.h"
#include "restore/run_locator.h"
#include "support/fake_source.h"

namespace varve::restore {
namespace {

constexpr std::uint64_t kNeverUsed = RestoreCache::kNever;
constexpr std::size_t kChunkCost = 100 + ChunkCache::kChunkOverheadBytes;

void offer(ChunkCache& cache, std::uint64_t id, std::uint64_t next_use) {
  cache.offer(ChunkId{id}, Bytes(100), next_use, true);
}
bool has(const ChunkCache& cache, std::uint64_t id) {
  return cache.contains({ChunkId{id}, ContainerNumber{0}, 0});
}

TEST(ChunkCache, EvictsTheFarthestNextUseFirst) {
  MemoryMeter meter;
  ChunkCache cache(&meter, false);
  cache.set_bytes_max(3 * kChunkCost);
  offer(cache, 3, 30);
  offer(cache, 1, 10);
  offer(cache, 2, 20);
  offer(cache, 4, 15);
  EXPECT_FALSE(has(cache, 3));
  EXPECT_TRUE(has(cache, 2));
  offer(cache, 9, 99);
  EXPECT_FALSE(has(cache, 9));
  offer(cache, 5, kNeverUsed);
  EXPECT_FALSE(has(cache, 5));
  EXPECT_EQ(cache.bytes(), 3 * kChunkCost);
}

TEST(ChunkCache, ShrinkingDropsTheFarthestAndTheMeterFollows) {
  MemoryMeter meter;
  {
    ChunkCache cache(&meter, false);
    cache.set_bytes_max(100 * kChunkCost);
    for (std::uint64_t use = 0; use < 10; ++use) offer(cache, use, use);
    EXPECT_EQ(meter.held(), 10 * kChunkCost);
    cache.set_bytes_max(2 * kChunkCost + 1);
    EXPECT_EQ(meter.held(), 2 * kChunkCost);
    EXPECT_TRUE(has(cache, 1));
    EXPECT_FALSE(has(cache, 2));
    cache.on_used(ChunkId{1}, 50);
    EXPECT_TRUE(has(cache, 1));
    cache.on_used(ChunkId{0}, kNeverUsed);
    EXPECT_EQ(meter.held(), kChunkCost);
  }
  EXPECT_EQ(meter.held(), 0U);
}

TEST(ChunkCache, UsedChunksGoFirstAndComeBackWhenTheWindowNeedsThem) {
  MemoryMeter meter;
  ChunkCache cache(&meter, true);
  cache.set_bytes_max(3 * kChunkCost);
  offer(cache, 1, kNeverUsed);
  offer(cache, 2, kNeverUsed);
  offer(cache, 3, 70);
  EXPECT_EQ(cache.counters().past_chunks, 2U);
  EXPECT_EQ(cache.counters().future_bytes, 100U);
  cache.on_ahead(ChunkId{1}, 80);
  EXPECT_EQ(cache.counters().future_bytes, 200U);
  EXPECT_EQ(cache.counters().future_added_bytes, 200U);
  offer(cache, 4, kNeverUsed);
  EXPECT_FALSE(has(cache, 2)) << "the P-chunk goes before F-chunks";
  EXPECT_TRUE(has(cache, 1));
  // After its last use, an F-chunk becomes the most recently used P-chunk.
  cache.on_used(ChunkId{3}, kNeverUsed);
  offer(cache, 5, 60);
  EXPECT_FALSE(has(cache, 4));
  EXPECT_TRUE(has(cache, 3));
}

TEST(AssemblyArea, GoodBytesEndBeforeABadRangeAndGoOnAfterIt) {
  MemoryMeter meter;
  BufferPool pool(1, &meter);
  AssemblyArea area(pool.acquire(1000), 5000, 900);
  area.mark_bad(500, 100);
  area.mark_bad(200, 50);
  area.finish();
  EXPECT_EQ(area.good_bytes(4999), 0U);
  EXPECT_EQ(area.good_bytes(5000), 200U);
  EXPECT_EQ(area.good_bytes(5199), 1U);
  EXPECT_EQ(area.good_bytes(5200), 0U);
  EXPECT_EQ(area.good_bytes(5249), 0U);
  EXPECT_EQ(area.good_bytes(5250), 250U);
  EXPECT_EQ(area.good_bytes(5600), 300U);
  EXPECT_EQ(area.good_bytes(5900), 0U);
}

TEST(AssemblyArea, LentBytesTakeThePlaceOfItsOwn) {
  MemoryMeter meter;
  BufferPool pool(1, &meter);
  AssemblyArea area(pool.acquire(1000), 5000, 900);
  std::memset(area.at(0), 1, 900);
  const auto memory = std::make_shared<Bytes>(500, std::byte{2});
  const std::weak_ptr<Bytes> held = memory;
  const std::span<const std::byte> bytes(*memory);
  // Three frames that follow each other in memory, in any order, and one that does not.
  area.lend(300, bytes.subspan(200, 100), memory);
  area.lend(100, bytes.first(100), memory);
  area.lend(200, bytes.subspan(100, 100), memory);
  area.lend(400, bytes.subspan(400, 50), memory);
  area.mark_bad(500, 100);
  EXPECT_EQ(area.view(310, 50).data(), bytes.data() + 210) << "also before the area is finished";
  area.finish();
  EXPECT_EQ(area.good_bytes(5000), 100U);
  EXPECT_EQ(*area.bytes_at(5099), std::byte{1});
  EXPECT_EQ(area.good_bytes(5100), 300U);
  EXPECT_EQ(area.bytes_at(5100), bytes.data());
  EXPECT_EQ(area.bytes_at(5399), bytes.data() + 299);
  EXPECT_EQ(area.good_bytes(5400), 50U);
  EXPECT_EQ(area.bytes_at(5400), bytes.data() + 400);
  EXPECT_EQ(area.good_bytes(5450), 50U);
  EXPECT_EQ(area.bytes_at(5450), area.at(450));
  EXPECT_EQ(area.good_bytes(5500), 0U);
  EXPECT_EQ(area.good_bytes(5600), 300U);
  EXPECT_GT(held.use_count(), 1) << "the area holds what is lent to it";
}

TEST(BufferPool, ReusesAReturnedBufferOfTheRightSize) {
  MemoryMeter meter;
  {
    BufferPool pool(1, &meter);
    const std::byte* first = nullptr;
    {
      const Buffer buffer = pool.acquire(1 << 20);
      first = buffer.data();
    }
    EXPECT_EQ(pool.acquire(1 << 20).data(), first);
    EXPECT_EQ(pool.acquire(1 << 10).capacity(), 1U << 10);
  }
  EXPECT_EQ(meter.held(), 0U);
}

TEST(BufferPool, SlotsAreUsedAgainAndOthersFollowWhenTheyAreGone) {
  constexpr std::size_t kSlotBytes = 640U << 10;
  MemoryMeter meter;
  {
    BufferPool pool(0, &meter, kSlotBytes);
    EXPECT_EQ(meter.held(), 0U);
    std::vector<Buffer> slots;
    std::set<std::byte*> places;
    while (meter.held() <= BufferPool::kSlotsBytes) {
      slots.push_back(pool.acquire(1000));
      places.insert(slots.back().data());
      std::memset(slots.back().data(), 1, 1000);
    }
    // The last buffer is not a slot.
    EXPECT_EQ(slots.size(), BufferPool::kSlotsBytes / kSlotBytes + 1);
    EXPECT_EQ(places.size(), slots.size());
    EXPECT_EQ(slots.front().capacity(), kSlotBytes);
    std::byte* const first = slots.front().data();
    slots.erase(slots.begin());
    EXPECT_EQ(pool.acquire(kSlotBytes).data(), first);
    EXPECT_EQ(pool.acquire(kSlotBytes + 1).capacity(), kSlotBytes + 1);
    slots.clear();
    EXPECT_EQ(meter.held(), BufferPool::kSlotsBytes);
  }
  EXPECT_EQ(meter.held(), 0U);
}

TEST(RecipeIndex, FindsEveryByteLikeASearchFromTheStart) {
  std::mt19937 random(5);
  const auto recipe = std::make_shared<format::Recipe>();
  for (std::uint32_t i = 0; i < 500; ++i) {
    if (random() % 4 == 0) {
      recipe->append_hole(1 + random() % 50);
    } else {
      recipe->append_chunk(ChunkId{i * 10ULL}, static_cast<std::uint32_t>(1 + random() % 50));
    }
  }
  RecipeIndex index(recipe);
  std::uint64_t offset = 0;
  std::uint64_t data = 0;
  for (std::size_t run = 0; run < recipe->runs.size(); ++run) {
    for (std::uint64_t i = 0; i < recipe->runs[run].bytes; ++i, ++offset) {
      const FilePosition at = index.find(offset);
      ASSERT_EQ(at.run, run);
      ASSERT_EQ(at.run_offset, i);
      ASSERT_EQ(at.data_offset, data + (recipe->runs[run].is_hole() ? 0 : i));
    }
    if (!recipe->runs[run].is_hole()) data += recipe->runs[run].bytes;
  }
  EXPECT_EQ(index.file_bytes(), offset);
  EXPECT_EQ(index.find(offset).run, recipe->runs.size());
}

TEST(RecipeIndex, SeekFindsTheNextRunOfAKindWithFewVisits) {
  const auto recipe = std::make_shared<format::Recipe>();
  constexpr std::uint32_t kPairs = 10000;
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    recipe->append_hole(30);
    recipe->append_chunk(ChunkId{i * 10ULL}, 10);
  }
  RecipeIndex index(recipe);
  std::uint64_t visited = 0;
  for (std::uint64_t begin = 0; begin < index.file_bytes(); begin += 40) {
    ASSERT_EQ(index.seek(begin, RunKind::kHole), begin);
    ASSERT_EQ(index.seek(begin + 29, RunKind::kData), begin + 30);
    ASSERT_EQ(index.seek(begin + 35, RunKind::kData), begin + 35);
    const auto next = index.seek(begin + 30, RunKind::kHole);
    ASSERT_EQ(next, begin + 40 < index.file_bytes() ? std::optional(begin + 40) : std::nullopt);
    ASSERT_LE(index.runs_visited() - std::exchange(visited, index.runs_visited()), 4 * 66U);
  }
  EXPECT_EQ(index.seek(index.file_bytes(), RunKind::kData), std::nullopt);
}

// A run over three containers. It begins and ends inside a container.
class RunLocatorTest : public testing::Test {
 protected:
  void SetUp() override {
    World::File& file = world_.add_file();
    world_.append_new(file, 10U << 20);
    world_.finish();
    ASSERT_EQ(file.recipe->runs.size(), 1U);
    ASSERT_EQ(world_.source.containers(), 3U);
    run_ = file.recipe->runs[0];
    const auto header = *world_.source.header(ContainerNumber{0});
    for (std::uint32_t i = 0; i < 100; ++i) run_.bytes -= header->chunks[i].raw_bytes;
    run_.first = run_.first.plus(100);
    run_.count -= 100 + 50;
    const auto tail = *world_.source.header(ContainerNumber{2});
    for (std::size_t i = tail->chunks.size() - 50; i < tail->chunks.size(); ++i) {
      run_.bytes -= tail->chunks[i].raw_bytes;
    }
    second_ = (*world_.source.header(ContainerNumber{0}))->raw_bytes;
    for (std::uint32_t i = 0; i < 100; ++i) second_ -= header->chunks[i].raw_bytes;
  }
  World world_{3};
  format::RecipeRun run_;
  std::uint64_t second_ = 0;  // Offset in the run of the second container's first byte.
  RunLocator locator_;
};

TEST_F(RunLocatorTest, FindsThePartOfAByte) {
  const auto first = locator_.find(world_.source, run_, 0, second_ - 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->container, ContainerNumber{0});
  EXPECT_EQ(first->index, 100U);
  EXPECT_EQ(first->bytes, second_);
  const auto second = locator_.find(world_.source, run_, 0, second_);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->container, ContainerNumber{1});
  EXPECT_EQ(second->offset, second_);
  const auto last = locator_.find(world_.source, run_, 0, run_.bytes - 1);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->container, ContainerNumber{2});
  EXPECT_EQ(last->offset + last->bytes, run_.bytes);
}

TEST_F(RunLocatorTest, DamagedHeaderOfFirstContainerIsMeasuredByTheRest) {
  world_.source.damage_header(0);
  const auto second = locator_.find(world_.source, run_, 0, second_);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->container, ContainerNumber{1});
  EXPECT_EQ(second->offset, second_);
}

TEST_F(RunLocatorTest, RunOfUnknownChunkReturnsCorrupt) {
  format::RecipeRun run = run_;
  run.first = ChunkId::make(VersionNumber{9}, 0);
  const auto part = locator_.find(world_.source, run, 0, 0);
  ASSERT_FALSE(part.has_value());
  EXPECT_EQ(part.error().code(), ErrorCode::kCorrupt);
}

TEST_F(RunLocatorTest, RunLongerThanItsChunksReturnsCorrupt) {
  format::RecipeRun run = run_;
  run.count = 10;
  run.bytes = 1;
  EXPECT_TRUE(locator_.find(world_.source, run, 0, 0).has_value());
  run.count = run_.count;
  const auto part = locator_.find(world_.source, run, 0, 0);
  ASSERT_FALSE(part.has_value());
  EXPECT_EQ(part.error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::restore
