// SPDX-License-Identifier: Apache-2.0
// Tests the parts of engines: rules, request planning, lanes, window, caches.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "restore/alacc_rules.h"
#include "restore/baseline_caches.h"
#include "restore/read_costs.h"
#include "restore/read_lanes.h"
#include "restore/stream_window.h"
#include "support/fake_source.h"

namespace varve::restore {
namespace {

// A cycle with average values, on which only the last rule acts.
AlaccCycle quiet_cycle() {
  AlaccCycle cycle;
  cycle.memory = 16;
  cycle.containers_read = 5;
  cycle.chunks = 500;
  cycle.future_bytes = 20 * kMiB;
  cycle.past_bytes = 10 * kMiB;
  cycle.past_chunks = 1000;
  cycle.area_bytes = 4 * kMiB;
  return cycle;
}

TEST(AlaccRules, BeginsWithHalfTheMemoryAndAWindowOfTwice) {
  EXPECT_EQ(AlaccRules::initial(16), (AlaccSizes{8, 32}));
  EXPECT_EQ(AlaccRules::initial(1), (AlaccSizes{1, 2}));
}

TEST(AlaccRules, ForwardAreaGrowsAfterMoreEffectiveCyclesThanItIsLong) {
  AlaccRules rules({});
  AlaccCycle cycle = quiet_cycle();
  cycle.containers_read = 2;
  AlaccSizes sizes{2, 32};
  sizes = rules.next(sizes, cycle);
  EXPECT_NE(rules.rule(), AlaccRule::kForwardGrows);
  sizes = rules.next(sizes, cycle);
  EXPECT_NE(rules.rule(), AlaccRule::kForwardGrows);
  const AlaccSizes before = sizes;
  sizes = rules.next(sizes, cycle);
  EXPECT_EQ(rules.rule(), AlaccRule::kForwardGrows);
  EXPECT_EQ(sizes, (AlaccSizes{before.forward + 1, before.window - 1}));
  // The count restarts.
  static_cast<void>(rules.next(sizes, cycle));
  EXPECT_NE(rules.rule(), AlaccRule::kForwardGrows);
}

TEST(AlaccRules, AChunkFromTheCacheBreaksTheRowOfEffectiveCycles) {
  AlaccRules rules({});
  AlaccCycle cycle = quiet_cycle();
  cycle.containers_read = 1;
  for (int i = 0; i < 10; ++i) {
    cycle.used_cache = i % 2 == 0;
    static_cast<void>(rules.next({1, 32}, cycle));
    EXPECT_NE(rules.rule(), AlaccRule::kForwardGrows);
  }
}

TEST(AlaccRules, ForwardAreaGrowsWhenDuplicatesAreNear) {
  AlaccRules rules({});
  AlaccCycle cycle = quiet_cycle();
  cycle.duplicates = 20;
  cycle.near_duplicates = 17;
  EXPECT_EQ(rules.next({4, 32}, cycle), (AlaccSizes{5, 31}));
  cycle.near_duplicates = 16;
  static_cast<void>(rules.next({4, 32}, cycle));
  EXPECT_NE(rules.rule(), AlaccRule::kForwardGrows);
  cycle.duplicates = 15;
  cycle.near_duplicates = 15;
  static_cast<void>(rules.next({4, 32}, cycle));
  EXPECT_NE(rules.rule(), AlaccRule::kForwardGrows) << "too few to tell";
  cycle.duplicates = 16;
  cycle.near_duplicates = 16;
  EXPECT_EQ(rules.next({16, 32}, cycle).forward, 16U) << "never more than there is memory";
}

TEST(AlaccRules, CacheGrowsWithoutPChunksOrWithManyNewFChunks) {
  AlaccRules rules({});
  AlaccCycle cycle = quiet_cycle();
  cycle.past_chunks = 0;
  cycle.past_bytes = 0;
  EXPECT_EQ(rules.next({4, 32}, cycle), (AlaccSizes{3, 31}));
  EXPECT_EQ(rules.rule(), AlaccRule::kCacheGrows);
  EXPECT_EQ(rules.next({1, 32}, cycle).forward, 1U);
  cycle = quiet_cycle();
  cycle.future_added_bytes = 4 * kMiB;
  static_cast<void>(rules.next({4, 32}, cycle));
  EXPECT_NE(rules.rule(), AlaccRule::kCacheGrows);
  cycle.future_added_bytes = 4 * kMiB + 1;
  static_cast<void>(rules.next({4, 32}, cycle));
  EXPECT_EQ(rules.rule(), AlaccRule::kCacheGrows);
}

TEST(AlaccRules, CacheShrinksWhenItIsFullOfPChunksOnly) {
  AlaccRules rules({});
  AlaccCycle cycle = quiet_cycle();
  cycle.future_bytes = 1 * kMiB;
  cycle.past_bytes = 46 * kMiB;  // 97.9 % of 47 MiB in a cache of 48.
  cycle.in_window = 100;
  EXPECT_EQ(rules.next({4, 32}, cycle), (AlaccSizes{5, 36})) << "(96 - 32) / 16 = 4 more";
  EXPECT_EQ(rules.rule(), AlaccRule::kCacheShrinks);
  cycle.in_window = 10;
  EXPECT_EQ(rules.next({4, 60}, cycle), (AlaccSizes{5, 59})) << "few are used again";
  EXPECT_EQ(rules.next({4, 40}, cycle), (AlaccSizes{5, 43})) << "but the window is short";
  cycle.future_bytes = 2 * kMiB;
  static_cast<void>(rules.next({4, 32}, cycle));
  EXPECT_NE(rules.rule(), AlaccRule::kCacheShrinks);
}

TEST(AlaccRules, WindowGrowsWhileFChunksAreFewAndStaysInItsBounds) {
  AlaccRules rules({});
  AlaccCycle cycle = quiet_cycle();
  EXPECT_EQ(rules.next({4, 32}, cycle), (AlaccSizes{4, 31}));
  EXPECT_EQ(rules.next({4, 16}, cycle), (AlaccSizes{4, 16}));
  cycle.future_bytes = 9 * kMiB;  // 19 % of 48 MiB.
  EXPECT_EQ(rules.next({4, 32}, cycle), (AlaccSizes{4, 33}));
  EXPECT_EQ(rules.next({4, 96}, cycle), (AlaccSizes{4, 96}));
  AlaccRules patient({0.8, true});
  cycle.future_bytes = 45 * kMiB;
  EXPECT_EQ(patient.next({4, 32}, cycle), (AlaccSizes{4, 32})) << "there are P-chunks";
  cycle.future_bytes = 30 * kMiB;
  EXPECT_EQ(patient.next({4, 32}, cycle), (AlaccSizes{4, 33}));
}

// Returns a header with frames of 100 stored bytes each.
format::ContainerHeader frames_of_hundred(std::uint32_t count) {
  format::ContainerHeader header;
  for (std::uint32_t i = 0; i < count; ++i) {
    format::FrameEntry frame;
    frame.offset = 100 * i;
    frame.stored_bytes = 100;
    header.frames.push_back(frame);
  }
  return header;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> planned(const std::string& needs,
                                                             const ReadCosts& costs) {
  std::vector<FrameNeed> frames;
  for (const char need : needs) {
    frames.push_back(need == 'N'   ? FrameNeed::kNow
                     : need == 'l' ? FrameNeed::kLater
                                   : FrameNeed::kNone);
  }
  const auto header = frames_of_hundred(static_cast<std::uint32_t>(needs.size()));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> slices;
  for (const Slice& slice : plan_slices(header, frames, costs)) {
    slices.emplace_back(slice.first, slice.last);
  }
  return slices;
}

TEST(PlanSlices, ReadsThroughGapsThatCostLessThanARequest) {
  using Slices = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(planned("..N..N..", {200, 10000}), (Slices{{2, 5}}));
  EXPECT_EQ(planned("..N..N..", {199, 10000}), (Slices{{2, 2}, {5, 5}}));
  EXPECT_EQ(planned("........", {200, 10000}), Slices{});
}

TEST(PlanSlices, TakesAlongWhatIsNeededLaterButFetchesNothingForItAlone) {
  using Slices = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(planned("lN.l..l", {100, 10000}), (Slices{{0, 3}}));
  EXPECT_EQ(planned("l...N", {100, 10000}), (Slices{{4, 4}}));
}

TEST(PlanSlices, RequestsStayWithinTheirLengthAndLoseNoNeededFrame) {
  using Slices = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(planned("NNNNN", {100, 200}), (Slices{{0, 1}, {2, 3}, {4, 4}}));
  EXPECT_EQ(planned("NN", {100, 50}), (Slices{{0, 0}, {1, 1}})) << "a frame is never cut";
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    std::string needs;
    for (unsigned i = 0; i < 1 + random() % 40; ++i) needs += "N.l.."[random() % 5];
    std::set<std::uint32_t> covered;
    const ReadCosts costs{static_cast<std::uint32_t>(random() % 500),
                          static_cast<std::uint32_t>(100 + random() % 2000)};
    for (const auto& [first, last] : planned(needs, costs)) {
      ASSERT_LE((last - first + 1) * 100, costs.request_bytes_max);
      for (std::uint32_t i = first; i <= last; ++i) ASSERT_TRUE(covered.insert(i).second);
    }
    for (std::uint32_t i = 0; i < needs.size(); ++i) {
      ASSERT_TRUE(needs[i] != 'N' || covered.contains(i)) << needs;
    }
  }
}

TEST(SplitSlices, PartsAreShortAndLoseNoNeededFrame) {
  const auto header = frames_of_hundred(9);
  std::vector<FrameNeed> needs(9, FrameNeed::kNow);
  needs[2] = FrameNeed::kNone;
  needs[3] = FrameNeed::kLater;
  needs[8] = FrameNeed::kNone;
  const std::vector<Slice> whole{{0, 5}, {7, 7}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> parts;
  for (const Slice& one : split_slices(header, needs, whole, 200)) {
    parts.emplace_back(one.first, one.last);
  }
  using Slices = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(parts, (Slices{{0, 1}, {3, 4}, {5, 5}, {7, 7}}));
  EXPECT_EQ(split_slices(header, needs, whole, 50).size(), 6U) << "a frame is never cut";
}

TEST(ReadCosts, FollowTheDiskWithinBounds) {
  // A hard disk: 8 ms, 150 MB/s.
  EXPECT_EQ(costs_of_disk(0.008, 150e6).gap_bytes_max, 1U << 20);
  EXPECT_EQ(costs_of_disk(0.008, 150e6).request_bytes_max, 2U << 20);
  // A fast solid-state disk: 80 microseconds, 2 GB/s.
  EXPECT_EQ(costs_of_disk(80e-6, 2e9).gap_bytes_max, 160000U);
  EXPECT_EQ(costs_of_disk(80e-6, 2e9).request_bytes_max, 640000U);
  EXPECT_EQ(costs_of_disk(0, 1e9).gap_bytes_max, 16U << 10);
  EXPECT_EQ(costs_of_disk(0, 1e9).request_bytes_max, kSliceBytesMax);
}

TEST(ReadLanes, EveryJobRunsOnceEvenIfTheWorkersNeverCome) {
  MemoryMeter meter;
  BufferPool pool(2, &meter);
  base::ThreadPool workers(2, "test");
  std::mutex held;
  std::unique_lock hold(held);
  // Both workers wait for this test.
  for (int i = 0; i < 2; ++i) workers.run([&held] { const std::lock_guard lock(held); });
  {
    ReadLanes lanes(&pool, &workers, 3, 1000);
    std::array<std::atomic<int>, 50> runs{};
    lanes.run(runs.size(), [&runs](std::size_t job, ReadLane& lane) {
      EXPECT_GE(lane.stored.size(), 1000U);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lane.stored.data()) % layout::kRoomAlignment, 0U);
      ++runs[job];
    });
    for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
    hold.unlock();
    lanes.run(runs.size(), [&runs](std::size_t job, ReadLane&) { ++runs[job]; });
    for (const auto& count : runs) EXPECT_EQ(count.load(), 2);
  }
}

// Yields runs of one to nine chunks of ten bytes.
class Runs final : public RunStream {
 public:
  explicit Runs(int count) : left_(count) {}
  Result<std::optional<StreamRun>> next() override {
    if (left_-- <= 0) return std::optional<StreamRun>();
    const auto chunks = static_cast<std::uint32_t>(1 + random_() % 9);
    const StreamRun run{ChunkId{next_}, chunks, 10U * chunks, position_};
    next_ += chunks + 1;
    position_ += run.bytes;
    return std::optional<StreamRun>(run);
  }

 private:
  int left_;
  std::mt19937 random_{6};
  std::uint64_t next_ = 0;
  std::uint64_t position_ = 0;
};

TEST(StreamWindow, CursorsKnowTheirPlaceInTheStreamHoweverItMoves) {
  Runs runs(3000);
  FakeSource source;
  StreamWindow window(&runs, &source, 64);
  std::mt19937 random(7);
  std::uint64_t near_seen = 0;
  while (true) {
    window.fill(10 * (1 + random() % 80));
    if (window.chunks().empty()) break;
    const std::uint64_t near_bytes = 10 * (random() % 80);
    window.extend_near(near_bytes, [&](std::uint64_t at) {
      EXPECT_EQ(at, near_seen);
      near_seen = at + 1;
    });
    ASSERT_LE(window.near_end(), window.chunks().end());
    StreamWindow::Cursor cursor = window.front();
    ASSERT_EQ(cursor.at, window.chunks().begin());
    std::uint64_t position = window.stream_position();
    for (auto left = random() % 70; left > 0 && cursor.at != window.chunks().end(); --left) {
      ASSERT_EQ(window.stream_position(cursor), position);
      const StreamRun& run = window.run(cursor);
      ASSERT_EQ(window.chunks().id(cursor.at), run.first.plus(cursor.chunk));
      window.advance(cursor, 10);
      position += 10;
    }
    window.leave(cursor);
    ASSERT_EQ(window.stream_position(), position);
    near_seen = std::max(near_seen, cursor.at);
    if (random() % 4 != 0) continue;
    std::uint64_t left = window.chunks().begin();
    const std::uint64_t target = position + random() % 1500;
    ASSERT_TRUE(
        window.skip_to(target, [&left](std::uint64_t at) { EXPECT_EQ(at, left++); }).has_value());
    ASSERT_EQ(window.chunks().begin(), left);
    ASSERT_GE(target, window.stream_position());
    near_seen = std::max(near_seen, left);
  }
  EXPECT_FALSE(window.error().has_value());
}

TEST(ContainerCache, GivesUpTheContainerThatIsNeededLast) {
  World world(9);
  World::File& file = world.add_file();
  world.append_new(file, 12 * kMiB);
  world.finish();
  ASSERT_GE(world.source.containers(), 3U);
  MemoryMeter meter;
  ContainerCache ahead(&meter, &world.source);
  ContainerCache recent(&meter, nullptr);
  const auto first_of = [&world](std::uint32_t container) {
    return (*world.source.header(ContainerNumber{container}))->chunks.front().id;
  };
  // The window needs the chunks 0, 1, 2, 0, 1.
  std::uint64_t at = 0;
  for (const std::uint32_t container : {0U, 1U, 2U, 0U, 1U}) {
    ahead.on_ahead(first_of(container), at);
    ahead.on_ahead(first_of(container).plus(1), at + 1);
    at += 10;
  }
  ahead.on_entered(20);
  for (ContainerCache* cache : {&ahead, &recent}) {
    cache->set_bytes_max(9 * kMiB);
    for (const std::uint32_t container : {0U, 1U, 2U}) {
      const auto header = *world.source.header(ContainerNumber{container});
      Bytes raw(header->frames[0].raw_bytes, static_cast<std::byte>(container));
      cache->offer_frame(*header, 0, raw);
    }
  }
  EXPECT_TRUE(ahead.contains({first_of(0), ContainerNumber{0}, 0}));
  EXPECT_FALSE(ahead.contains({first_of(1), ContainerNumber{1}, 0}));
  EXPECT_TRUE(ahead.contains({first_of(2), ContainerNumber{2}, 0}));
  const auto farthest = *world.source.header(ContainerNumber{1});
  ahead.offer_frame(*farthest, 0, Bytes(farthest->frames[0].raw_bytes));
  EXPECT_FALSE(ahead.contains({first_of(1), ContainerNumber{1}, 0})) << "others come sooner";
  EXPECT_TRUE(ahead.contains({first_of(2), ContainerNumber{2}, 0}));
  EXPECT_FALSE(recent.contains({first_of(0), ContainerNumber{0}, 0}));
  EXPECT_TRUE(recent.contains({first_of(1), ContainerNumber{1}, 0}));
  EXPECT_EQ(recent.find({first_of(2), ContainerNumber{2}, 0}).front(), std::byte{2});
  EXPECT_TRUE(recent.find({first_of(2), ContainerNumber{2}, 1}).empty())
      << "another chunk stands there";
}

}  // namespace
}  // namespace varve::restore
