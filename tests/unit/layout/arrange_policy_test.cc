// SPDX-License-Identifier: Apache-2.0
#include "layout/arrange_policy.h"

#include <gtest/gtest.h>

#include "base/id_runs.h"
#include "layout/stream_order.h"

namespace varve::layout {
namespace {

using catalog::SegmentRecord;
using catalog::SegmentRole;

SegmentRecord file(std::uint32_t segment, SegmentRole role, std::uint32_t version,
                   std::uint64_t raw = 1000, std::uint64_t live = 1000) {
  SegmentRecord record;
  record.segment = SegmentNumber{segment};
  record.role = role;
  record.version = VersionNumber{version};
  record.raw_bytes = raw;
  record.live_bytes = live;
  return record;
}

std::vector<SegmentNumber> numbers(std::initializer_list<std::uint32_t> all) {
  std::vector<SegmentNumber> segments;
  for (const auto number : all) segments.push_back(SegmentNumber{number});
  return segments;
}

std::unique_ptr<ArrangePolicy> policy(ArrangePolicyKind kind, std::uint32_t batch = 3,
                                      std::uint32_t fan = 3) {
  ArrangeSettings settings;
  settings.policy = kind;
  settings.batch = batch;
  settings.fan = fan;
  settings.dead_permille = 100;
  return make_arrange_policy(settings);
}

// In an object store, each byte that arranging writes is uploaded.
TEST(TieredPolicy, FewBytesInAnObjectStoreWait) {
  const auto tiered = policy(ArrangePolicyKind::kTiered);
  ActiveState state;
  state.newest = VersionNumber{9};
  state.files = {file(0, SegmentRole::kBase, 1, 10'000, 7000)};
  state.departing_bytes = 3000;
  EXPECT_TRUE(tiered->wants_departure(state));
  EXPECT_TRUE(tiered->next(state));
  state.spare_bytes = 3999;
  EXPECT_TRUE(tiered->wants_departure(state)) << "the newest version has 4000 bytes";
  EXPECT_TRUE(tiered->next(state));
  state.spare_bytes = 8000;
  EXPECT_FALSE(tiered->wants_departure(state));
  EXPECT_FALSE(tiered->next(state));
  state.departing_bytes = 8001;
  EXPECT_TRUE(tiered->wants_departure(state));
  state.departing_bytes = 1;
  state.files.push_back(file(1, SegmentRole::kMerged, 2, 6001, 1000));
  EXPECT_TRUE(tiered->next(state)) << "more dead space than may wait";
  EXPECT_TRUE(tiered->wants_departure(state)) << "chunks leave files that are written again";
}

TEST(TieredPolicy, ShortRunsInAnObjectStoreWait) {
  const auto tiered = policy(ArrangePolicyKind::kTiered);
  ActiveState state;
  state.newest = VersionNumber{9};
  state.spare_bytes = 80'000;
  state.files = {file(0, SegmentRole::kBase, 1)};
  for (std::uint32_t run = 1; run < 9; ++run) {
    state.files.push_back(file(run, SegmentRole::kNew, run + 1, 1000));
    EXPECT_FALSE(tiered->next(state)) << run;
  }
  state.files.push_back(file(9, SegmentRole::kNew, 10, 1000));
  EXPECT_TRUE(tiered->next(state)) << "too many runs";
  state.files.resize(4);
  state.files.push_back(file(9, SegmentRole::kNew, 10, 8000));
  EXPECT_TRUE(tiered->next(state)) << "too many bytes";
}

TEST(OriginalPolicy, WritesAllButTheNewestVersionsFilesAnew) {
  const auto original = policy(ArrangePolicyKind::kOriginal);
  ActiveState state;
  state.newest = VersionNumber{3};
  state.files = {file(0, SegmentRole::kBase, 2), file(1, SegmentRole::kNew, 2),
                 file(2, SegmentRole::kNew, 3)};
  const auto job = original->next(state);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->segments, numbers({0, 1}));
  EXPECT_EQ(job->role, SegmentRole::kBase);
  EXPECT_EQ(job->version, VersionNumber{3});
  EXPECT_EQ(job->order, ChunkOrder::kBirth);
  state.files = {file(3, SegmentRole::kBase, 3), file(2, SegmentRole::kNew, 3)};
  EXPECT_FALSE(original->next(state)) << "all is well";
}

TEST(BatchedPolicy, WaitsForItsNumberOfVersions) {
  const auto batched = policy(ArrangePolicyKind::kBatched);
  ActiveState state;
  state.newest = VersionNumber{3};
  state.files = {file(0, SegmentRole::kBase, 1), file(1, SegmentRole::kNew, 2),
                 file(2, SegmentRole::kNew, 3)};
  state.versions_behind = 2;
  EXPECT_FALSE(batched->next(state));
  EXPECT_FALSE(batched->wants_departure(state));
  state.newest = VersionNumber{4};
  state.versions_behind = 3;
  state.files.push_back(file(3, SegmentRole::kNew, 4));
  EXPECT_TRUE(batched->wants_departure(state));
  EXPECT_EQ(batched->next(state)->segments, numbers({0, 1, 2}));
}

TEST(BatchedPolicy, FinishesWhatItHasBegun) {
  const auto batched = policy(ArrangePolicyKind::kBatched);
  ActiveState state;
  state.newest = VersionNumber{4};
  state.files = {file(0, SegmentRole::kBase, 1), file(3, SegmentRole::kNew, 4),
                 file(4, SegmentRole::kBase, 4)};
  EXPECT_EQ(batched->next(state)->segments, numbers({0}));
}

TEST(TieredPolicy, MergesNewRunsThenMergedOnes) {
  const auto tiered = policy(ArrangePolicyKind::kTiered);
  ActiveState state;
  state.newest = VersionNumber{9};
  state.files = {file(0, SegmentRole::kBase, 1), file(1, SegmentRole::kNew, 7),
                 file(2, SegmentRole::kNew, 8), file(3, SegmentRole::kNew, 8)};
  EXPECT_FALSE(tiered->next(state));
  state.files.push_back(file(4, SegmentRole::kNew, 9));
  auto job = tiered->next(state);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->role, SegmentRole::kMerged);
  EXPECT_EQ(job->segments, numbers({1, 2, 3, 4}));
  state.files = {file(0, SegmentRole::kBase, 1), file(5, SegmentRole::kMerged, 3),
                 file(6, SegmentRole::kMerged, 6), file(7, SegmentRole::kMerged, 9)};
  job = tiered->next(state);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->role, SegmentRole::kBase);
  EXPECT_EQ(job->segments.size(), 4U);
}

TEST(TieredPolicy, WritesTheDeadestFilesOfARunAnew) {
  const auto tiered = policy(ArrangePolicyKind::kTiered);
  ActiveState state;
  state.newest = VersionNumber{2};
  for (std::uint32_t i = 0; i < 10; ++i) state.files.push_back(file(i, SegmentRole::kBase, 1));
  state.files[3].live_bytes = 500;
  state.files[7].live_bytes = 600;
  EXPECT_FALSE(tiered->next(state)) << "9 % are dead, 10 % are tolerated";
  state.files[5].live_bytes = 850;
  const auto job = tiered->next(state);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->segments, numbers({3}));
  EXPECT_EQ(job->role, SegmentRole::kBase);
  EXPECT_EQ(job->version, VersionNumber{1});
}

TEST(TieredPolicy, WritesNoMoreFilesThanTheBoundOfTheGapsRequires) {
  const auto tiered = policy(ArrangePolicyKind::kTiered);
  ActiveState state;
  state.newest = VersionNumber{2};
  for (std::uint32_t i = 0; i < 10; ++i) state.files.push_back(file(i, SegmentRole::kBase, 1));
  state.gap_bytes = {{SegmentNumber{1}, 240}, {SegmentNumber{4}, 200}};
  EXPECT_FALSE(tiered->next(state)) << "gaps cost 4.4 %, 4.5 % are tolerated";
  state.gap_bytes[SegmentNumber{6}] = 30;
  const auto job = tiered->next(state);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->segments, numbers({1}));
}

TEST(TieredPolicy, WritesOldFilesBeforeYoungOnesOfAlmostTheSameGaps) {
  const auto tiered = policy(ArrangePolicyKind::kTiered);
  ActiveState state;
  state.newest = VersionNumber{2};
  state.next_container = ContainerNumber{110};
  for (std::uint32_t i = 0; i < 10; ++i) {
    state.files.push_back(file(i, SegmentRole::kBase, 1));
    state.files.back().first_container = ContainerNumber{10 * (i + 1)};
  }
  state.gap_bytes = {{SegmentNumber{0}, 250}, {SegmentNumber{9}, 260}};
  EXPECT_EQ(tiered->next(state)->segments, numbers({0}));
  state.gap_bytes = {{SegmentNumber{0}, 50}, {SegmentNumber{9}, 450}};
  EXPECT_EQ(tiered->next(state)->segments, numbers({9})) << "its chunks die nine times as fast";
}

TEST(TieredPolicy, WritesFilesOfNewRunsAsOneRun) {
  const auto tiered = policy(ArrangePolicyKind::kTiered, 3, 9);
  ActiveState state;
  state.newest = VersionNumber{4};
  state.files = {file(0, SegmentRole::kBase, 1), file(1, SegmentRole::kNew, 2),
                 file(2, SegmentRole::kNew, 3), file(3, SegmentRole::kNew, 4)};
  state.gap_bytes = {{SegmentNumber{1}, 300}, {SegmentNumber{2}, 300}};
  const auto job = tiered->next(state);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->segments, numbers({1, 2}));
  EXPECT_EQ(job->role, SegmentRole::kNew);
  EXPECT_EQ(job->version, VersionNumber{3});
}

TEST(GapCost, OfALongGapIsThatOfSkippingIt) {
  EXPECT_EQ(gap_cost(8192), 8192U);
  EXPECT_EQ(gap_cost(kGapReadMax), kGapReadMax);
  EXPECT_EQ(gap_cost(kGapReadMax + 1), kGapSkipCost);
}

TEST(StreamOrder, FollowsTheStreamAndEndsWithTheRest) {
  const auto id = [](std::uint32_t birth, std::uint32_t ordinal) {
    return ChunkId::make(VersionNumber{birth}, ordinal);
  };
  const auto chunks = base::IdRuns::from({{id(1, 0), 10}, {id(2, 0), 4}});
  const StreamWalk stream = [&](const std::function<bool(const base::IdRun&)>& visit) {
    for (const auto& run : std::vector<base::IdRun>{
             {id(2, 1), 2}, {id(1, 4), 3}, {id(1, 5), 1}, {id(3, 0), 9}, {id(1, 0), 2}}) {
      if (!visit(run)) break;
    }
    return Result<void>();
  };
  const std::vector<base::IdRun> expected = {{id(2, 1), 2}, {id(1, 4), 3}, {id(1, 0), 4},
                                             {id(1, 7), 3}, {id(2, 0), 1}, {id(2, 3), 1}};
  EXPECT_EQ(in_stream_order(chunks, stream, [] { return false; }), expected);
}

}  // namespace
}  // namespace varve::layout
