// SPDX-License-Identifier: Apache-2.0
// The ingest pipeline with a policy that wants to see the chunks after those it decides about.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "look_ahead_support.h"

namespace varve::ingest {
namespace {

using test::Bytes;
using test::random_bytes;
using test::RandomWriter;
using test::ReferAhead;

std::set<ChunkId> chunk_ids(const format::Recipe& recipe) {
  std::set<ChunkId> ids;
  for (const auto& run : recipe.runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) ids.insert(run.first.plus(i));
  }
  return ids;
}

TEST(LookAhead, RecipesAreThoseWithoutLookAhead) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    AlwaysRefer always;
    test::Pipeline plain(always);
    RandomWriter expected(plain, seed);
    expected.run(300);
    ReferAhead refer(seed * 1500000);
    test::Pipeline ahead(refer);
    RandomWriter written(ahead, seed);
    written.run(300);
    ASSERT_EQ(written.recipes.size(), expected.recipes.size());
    for (std::size_t i = 0; i < written.recipes.size(); ++i) {
      ASSERT_EQ(written.recipes[i].runs, expected.recipes[i].runs) << "file " << i;
    }
    EXPECT_EQ(ahead.layout.chunks(), plain.layout.chunks());
    EXPECT_EQ(refer.total.fresh_chunks, ahead.layout.chunks());
    EXPECT_EQ(ahead.metrics.duplicate_chunks.value(), refer.total.kept_chunks);
    EXPECT_GT(refer.total.kept_chunks, 100U);
    EXPECT_GT(refer.segments, 10U);
  }
}

TEST(LookAhead, PolicySeesEnoughUntilTheDataEnds) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{3000000}, std::size_t{20} << 20}) {
    ReferAhead refer(bytes);
    test::Pipeline to(refer);
    const Bytes data = random_bytes(30U << 20, 5);
    const auto stream = to.pipeline->start({});
    ASSERT_TRUE(to.pipeline->append(stream, data));
    // A drain ends the wait for more data, so the pipeline gets time to come that far.
    constexpr int kTriesMax = 6000;
    for (int i = 0; i < kTriesMax && to.pipeline->held_bytes() > bytes + (4U << 20); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(to.pipeline->finish(stream));
    ASSERT_TRUE(to.pipeline->drain());
    EXPECT_TRUE(to.bytes_of(to.pipeline->take_finished(stream).value()) == data);
    // The last segments have less ahead. A batch has at least a MiB, apart from the last one.
    EXPECT_GE(refer.full_segments,
              (data.size() - bytes) / (IngestPipeline::kBatchBytes + 65536) - 4);
    EXPECT_GT(refer.segments, refer.full_segments);
  }
}

TEST(LookAhead, LookAheadBeyondMemoryDoesNotWaitForEver) {
  ReferAhead refer(std::size_t{1} << 30);
  test::Pipeline to(refer);
  const Bytes data = random_bytes(8U << 20, 6);
  const auto stream = to.pipeline->start({});
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(to.pipeline->append(stream, data));
    EXPECT_LE(to.pipeline->held_bytes(), IngestPipeline::kInFlightBytesMax + (3U << 20));
  }
  const auto content = to.pipeline->settle(stream);
  ASSERT_TRUE(content);
  EXPECT_EQ(content->bytes(), 9 * data.size());
}

TEST(LookAhead, TinyFilesAndHolesDoNotFillMemory) {
  ReferAhead refer(std::size_t{20} << 20);
  test::Pipeline to(refer);
  const Bytes data = random_bytes(60007, 7);
  std::vector<IngestPipeline::StreamPtr> streams;
  for (std::size_t i = 0; i < 60000; ++i) {
    streams.push_back(to.pipeline->start({}));
    ASSERT_TRUE(to.pipeline->append(streams.back(), std::span(data).subspan(i, 8)));
    if (i % 3 == 0) {
      ASSERT_TRUE(to.pipeline->append_hole(streams.back(), 9));
    }
    ASSERT_TRUE(to.pipeline->finish(streams.back()));
  }
  ASSERT_TRUE(to.pipeline->drain());
  for (const auto& stream : streams) ASSERT_TRUE(to.pipeline->take_finished(stream));
  EXPECT_LE(refer.candidates_max, IngestPipeline::kAheadPiecesMax + 2 * 8192U);
  EXPECT_GT(refer.candidates_max, IngestPipeline::kAheadPiecesMax / 2);
}

TEST(LookAhead, EachOldCopyIsStoredAgainOnce) {
  AlwaysRefer always;
  test::Pipeline to(always);
  to.layout.has_pool = true;
  const Bytes data = random_bytes(3000000, 8);
  const auto old = chunk_ids(to.store(data));
  test::RenewOld renew(std::size_t{20} << 20, old);
  to.start(renew);
  // The repetitions are looked up before the first one is committed.
  const auto stream = to.pipeline->start({});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(to.pipeline->append(stream, data));
    ASSERT_TRUE(to.pipeline->append_hole(stream, 1));
  }
  ASSERT_TRUE(to.pipeline->finish(stream));
  ASSERT_TRUE(to.pipeline->drain());
  const auto recipe = to.pipeline->take_finished(stream);
  ASSERT_TRUE(recipe);
  EXPECT_EQ(renew.total.again_chunks, old.size());
  EXPECT_EQ(renew.total.again_bytes, data.size());
  EXPECT_EQ(renew.total.kept_bytes, 2 * data.size());
  EXPECT_EQ(to.layout.pool_chunks(), old.size()) << "copies that are stored again are the pool's";
  EXPECT_EQ(to.layout.chunks(), old.size());
  for (const ChunkId id : chunk_ids(*recipe)) {
    EXPECT_TRUE(id == ChunkId() || is_pool(id));
  }
  Bytes expected;
  for (int i = 0; i < 3; ++i) {
    expected.insert(expected.end(), data.begin(), data.end());
    expected.emplace_back();
  }
  EXPECT_TRUE(to.bytes_of(*recipe) == expected);
}

TEST(LookAhead, ChunksOfOtherSeriesGoToThePoolIfThePolicySharesThem) {
  AlwaysRefer always;
  test::Pipeline other(always);
  const Bytes theirs = random_bytes(1200000, 9);
  other.store(theirs);
  test::ShareElsewhere share(1U << 20);
  test::Pipeline to(share);
  to.layout.has_pool = true;
  to.index.elsewhere = other.index.fingerprints();
  Bytes data = random_bytes(900000, 10);
  data.insert(data.end(), theirs.begin(), theirs.end());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(to.bytes_of(to.store(data)) == data);
  EXPECT_EQ(to.layout.pool_chunks(), share.total.shared_chunks);
  EXPECT_GE(to.layout.pool_chunks() + 3, other.layout.chunks());
  EXPECT_LE(to.layout.pool_chunks(), other.layout.chunks());
  EXPECT_EQ(to.layout.chunks() + to.layout.pool_chunks(), share.total.fresh_chunks);
}

TEST(LookAhead, FullDiskLosesNothing) {
  for (const std::uint64_t seed : {11U, 12U, 13U, 14U}) {
    SCOPED_TRACE(seed);
    ReferAhead refer(seed % 2 == 0 ? 1500000 : std::size_t{20} << 20);
    refer.may_repeat = true;
    test::Pipeline to(refer);
    RandomWriter writer(to, seed);
    writer.disk_fills = true;
    writer.run(300);
    EXPECT_EQ(refer.total.fresh_chunks, to.layout.chunks());
    EXPECT_EQ(to.pipeline->placed_chunks(), to.layout.chunks());
    EXPECT_EQ(to.pipeline->held_bytes(), 0U);
  }
}

TEST(LookAhead, FullDiskIsToldBeforeTheLookAheadIsThere) {
  ReferAhead refer(std::size_t{20} << 20);
  refer.may_repeat = true;
  test::Pipeline to(refer);
  to.layout.full = true;
  const auto stream = to.pipeline->start({});
  const Bytes data = random_bytes(2000000, 15);
  ASSERT_TRUE(to.pipeline->append(stream, data));
  for (int i = 0; i < 3; ++i) {
    const auto drained = to.pipeline->drain();
    ASSERT_FALSE(drained);
    EXPECT_EQ(drained.error().code(), ErrorCode::kNoSpace);
    EXPECT_FALSE(to.pipeline->append(stream, data)) << "the disk is still full";
  }
  to.layout.full = false;
  const auto content = to.pipeline->settle(stream);
  ASSERT_TRUE(content);
  EXPECT_EQ(content->bytes(), data.size());
}

// A deletion waits for lookups by drain(), and an error ends drain() early.
TEST(LookAhead, NoLookupOutlivesAnError) {
  ReferAhead refer(std::size_t{20} << 20);
  refer.may_repeat = true;
  test::Pipeline to(refer);
  const Bytes old = random_bytes(4000000, 16);
  to.store(old);
  const auto stream = to.pipeline->start({});
  ASSERT_TRUE(to.pipeline->append(stream, random_bytes(2000000, 17)));
  ASSERT_TRUE(to.pipeline->append(stream, old));
  ASSERT_TRUE(to.pipeline->finish(stream));
  to.layout.full = true;
  ASSERT_FALSE(to.pipeline->drain());
  const auto hidden = to.index.hide();
  to.layout.full = false;
  ASSERT_TRUE(to.pipeline->drain());
  const auto recipe = to.pipeline->take_finished(stream);
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->bytes(), 6000000U);
  for (const ChunkId id : chunk_ids(*recipe)) ASSERT_FALSE(hidden.contains(id));
}

TEST(LookAhead, TwoThreadsWriteTheirFiles) {
  ReferAhead refer(3000000);
  test::Pipeline to(refer);
  std::deque<RandomWriter> writers;
  for (const std::uint64_t seed : {18U, 19U}) writers.emplace_back(to, seed);
  std::thread other([&] { writers.back().run(400); });
  writers.front().run(400);
  other.join();
  EXPECT_EQ(refer.total.fresh_chunks, to.layout.chunks());
}

TEST(LookAhead, GivingUpEndsLookupsAndWaiting) {
  for (const std::uint64_t seed : {20U, 21U, 22U}) {
    ReferAhead refer(seed == 20 ? std::size_t{1} << 30 : 2000000);
    test::Pipeline to(refer);
    std::atomic<std::uint64_t> written{0};
    std::vector<std::thread> threads;
    for (const std::uint64_t one : {seed, seed + 100}) {
      threads.emplace_back([&, one] {
        const Bytes data = random_bytes(300000 + seed * 1000, one);
        const auto stream = to.pipeline->start({});
        while (to.pipeline->append(stream, data)) ++written;
        EXPECT_EQ(to.pipeline->drain().error().code(), ErrorCode::kReadOnly);
      });
    }
    while (written < 40 + seed) std::this_thread::yield();
    to.pipeline->give_up();
    const auto calls = to.index.calls.load();
    const auto chunks = to.layout.chunks();
    for (auto& thread : threads) thread.join();
    to.pipeline.reset();
    EXPECT_EQ(to.index.calls, calls);
    EXPECT_EQ(to.layout.chunks(), chunks);
  }
}

}  // namespace
}  // namespace varve::ingest
