// SPDX-License-Identifier: Apache-2.0
#include "layout/delta_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/coding.h"
#include "format/container.h"
#include "layout/delta_coalescing.h"
#include "support/noise.h"
#include "volume_samples.h"

namespace varve::layout {
namespace {

SketchedChunk chunk_of(std::uint32_t birth, std::uint32_t ordinal, const std::string& bytes) {
  return {ChunkId::make(static_cast<VersionNumber>(birth), ordinal),
          static_cast<std::uint32_t>(bytes.size()), sketch_of(base::as_bytes(bytes))};
}

std::vector<ChunkId> ids_of(const DeltaPlan& plan) {
  std::vector<ChunkId> ids;
  for (const auto& run : plan.order) {
    for (std::uint32_t i = 0; i < run.count; ++i) ids.push_back(run.first.plus(i));
  }
  return ids;
}

// Checks what readers and deletions rely on.
void check_plan(const std::vector<SketchedChunk>& chunks, const DeltaPlan& plan) {
  std::map<ChunkId, std::uint32_t> raw_bytes;
  for (const auto& chunk : chunks) raw_bytes[chunk.id] = chunk.raw_bytes;
  const auto ids = ids_of(plan);
  EXPECT_EQ(ids.size(), chunks.size());
  auto sorted = ids;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end()) << "a chunk is there twice";
  std::size_t at = 0;
  std::size_t group_first = 0;
  std::uint64_t group_bytes = 0;
  std::vector<std::size_t> depths;  // Of the group's frames.
  ChunkId last_first{};
  for (const auto& frame : plan.frames) {
    if (depths.empty()) {
      group_first = at;
      EXPECT_GE(ids[at], last_first) << "groups descend";
      last_first = ids[at];
    }
    std::uint64_t bytes = 0;
    ASSERT_GT(frame.chunks, 0U);
    for (std::uint32_t i = 0; i < frame.chunks; ++i, ++at) {
      ASSERT_LT(at, ids.size());
      bytes += raw_bytes.at(ids[at]);
      EXPECT_GE(ids[at], ids[group_first]) << "the group's first chunk has not the lowest id";
    }
    EXPECT_EQ(bytes, frame.raw_bytes);
    EXPECT_LE(bytes, format::kFrameRawBytesMax);
    ASSERT_LE(frame.prefix, depths.size()) << "a prefix is outside of the group";
    depths.push_back(frame.prefix == 0 ? 0 : depths[depths.size() - frame.prefix] + 1);
    EXPECT_LE(depths.back(), format::kFramePrefixesMax);
    group_bytes += bytes;
    if (!frame.ends_group) continue;
    EXPECT_LE(group_bytes, kGroupRawBytesMax);
    EXPECT_LE(at - group_first, kGroupChunksMax);
    depths.clear();
    group_bytes = 0;
  }
  EXPECT_TRUE(depths.empty()) << "the last group has no end";
  EXPECT_EQ(at, ids.size());
}

TEST(DeltaPlan, ChunksAlikeAreInFramesWithBases) {
  std::vector<SketchedChunk> chunks;
  for (std::uint32_t birth = 1; birth <= 8; ++birth) {
    for (std::uint32_t i = 0; i < 20; ++i) {
      auto bytes = test::noise(8000, i);
      bytes.replace(birth * 500, 20, test::noise(20, birth * 100 + i));
      chunks.push_back(chunk_of(birth, i, bytes));
    }
  }
  const auto plan = plan_delta(chunks);
  check_plan(chunks, plan);
  std::uint32_t with_prefix = 0;
  for (const auto& frame : plan.frames) with_prefix += frame.prefix != 0 ? frame.chunks : 0;
  EXPECT_GE(with_prefix, 130U) << "of 140 that resemble an earlier one";
}

TEST(DeltaPlan, ChunksUnlikeOthersHaveNoBase) {
  std::vector<SketchedChunk> chunks;
  for (std::uint32_t i = 0; i < 300; ++i) chunks.push_back(chunk_of(1, i, test::noise(3000, i)));
  const auto plan = plan_delta(chunks);
  check_plan(chunks, plan);
  for (const auto& frame : plan.frames) EXPECT_EQ(frame.prefix, 0);
  EXPECT_EQ(plan.order.size(), 1U) << "the order of the ids";
}

TEST(DeltaPlan, KeepsTheLimitsOfGroupsForAnyChunks) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<SketchedChunk> chunks;
    const auto families = 1 + random() % 50;
    const auto count = random() % 12000;
    std::uint32_t birth = 1;
    std::uint32_t ordinal = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (random() % 200 == 0) {
        ++birth;
        ordinal = 0;
      }
      ordinal += 1 + (random() % 9 == 0 ? 7 : 0);
      SketchedChunk chunk;
      chunk.id = ChunkId::make(static_cast<VersionNumber>(birth), ordinal);
      const auto kind = random() % 3;
      chunk.raw_bytes = static_cast<std::uint32_t>(kind == 0   ? 1 + random() % 50
                                                   : kind == 1 ? 1 + random() % 9000
                                                               : format::kFrameRawBytesMax);
      if (round % 3 == 0) chunk.raw_bytes = 1 + static_cast<std::uint32_t>(random() % 60);
      for (auto& value : chunk.sketch) value = static_cast<std::uint32_t>(random() % families);
      chunks.push_back(chunk);
    }
    const auto plan = plan_delta(chunks);
    check_plan(chunks, plan);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

TEST(ChunkSketch, OfAnEditedChunkSharesValues) {
  int alike = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto before = test::noise(8192, i);
    auto after = before;
    after.insert(i * 150, test::noise(30, 1000 + i));
    const auto a = sketch_of(base::as_bytes(before));
    const auto b = sketch_of(base::as_bytes(after));
    bool shares = false;
    for (std::size_t value = 0; value < a.size(); ++value) shares = shares || a[value] == b[value];
    alike += shares ? 1 : 0;
  }
  EXPECT_GE(alike, 45);
}

CoalescingLimits fan(std::size_t deaths) {
  CoalescingLimits limits;
  limits.delta_fan = deaths;
  return limits;
}

// Returns a volume for each of successive deaths. `again`: stored bytes of each joined death but
// the first one, of 1,000.
std::vector<catalog::SegmentRecord> volumes_of_spans(const std::vector<std::uint32_t>& spans,
                                                     std::uint32_t again = 200) {
  std::vector<catalog::SegmentRecord> volumes;
  std::uint32_t death = 0;
  for (const auto span : spans) {
    death += span;
    volumes.push_back(volume(static_cast<std::uint32_t>(volumes.size()) + 1, death, 1000 * span));
    volumes.back().bytes = 1000 + again * (span - 1);
  }
  return volumes;
}

// Returns the number of deaths that the next job joins, with a fan of eight.
std::size_t joined(const std::vector<std::uint32_t>& spans) {
  const auto job = next_delta_job(volumes_of_spans(spans), versions_up_to(1000), 4, fan(8));
  return job ? job->volumes.size() : 0;
}

TEST(DeltaJob, JoinsDeathsIfTheSpanDoublesForEach) {
  EXPECT_EQ(joined({1}), 0U);
  EXPECT_EQ(joined({1, 1}), 2U);
  EXPECT_EQ(joined({2, 1}), 0U);
  EXPECT_EQ(joined({2, 1, 1}), 3U);
  EXPECT_EQ(joined({4, 1, 1}), 2U);
  EXPECT_EQ(joined({4, 2, 1}), 0U);
  EXPECT_EQ(joined({4, 2, 1, 1}), 4U);
  EXPECT_EQ(joined({8, 4, 2, 1, 1}), 4U) << "eight joined deaths are left";
  EXPECT_EQ(joined({1, 3, 1, 5, 1}), 4U) << "after deletions, a span has any length";
}

TEST(DeltaJob, JoinsFewDeathsOnlyIfThatPays) {
  const auto joins = [](const std::vector<std::uint32_t>& spans, std::uint32_t again) {
    return next_delta_job(volumes_of_spans(spans, again), versions_up_to(1000), 4, fan(8))
        .has_value();
  };
  EXPECT_TRUE(joins({1, 1}, 900)) << "nothing is known yet";
  EXPECT_FALSE(joins({2, 1, 1}, 900));
  EXPECT_TRUE(joins({2, 1, 1}, 400));
  EXPECT_FALSE(joins({8, 1, 1}, 800));
  EXPECT_TRUE(joins({8, 1, 1}, 300));
  EXPECT_TRUE(joins({2, 1, 1, 1, 1, 1, 1}, 900)) << "eight deaths are joined in any case";
}

TEST(DeltaJob, JoinsManyDeathsAtOnce) {
  EXPECT_EQ(joined(std::vector<std::uint32_t>(100, 1)), 8U);
  std::vector<std::uint32_t> spans(7, 8);
  EXPECT_EQ(joined(spans), 0U);
  spans.push_back(8);
  EXPECT_EQ(joined(spans), 8U);
  EXPECT_EQ(joined(std::vector<std::uint32_t>(10, 64)), 0U);
}

// Each chunk is written again once for each doubling, and once more.
TEST(DeltaJob, WritesEachDeathAgainFourTimesAtMost) {
  std::vector<std::uint32_t> spans;
  std::vector<std::uint32_t> copies;  // Of the death with the most copies in each volume.
  std::uint32_t most = 0;
  for (int death = 0; death < 600; ++death) {
    spans.push_back(1);
    copies.push_back(0);
    while (true) {
      const auto job = next_delta_job(volumes_of_spans(spans), versions_up_to(700), 4, fan(8));
      if (!job) break;
      std::uint32_t number = 0;
      std::size_t end = 0;
      while (number != static_cast<std::uint32_t>(job->death)) number += spans[end++];
      const auto first = end - job->volumes.size();
      for (std::size_t i = first + 1; i < end; ++i) {
        spans[first] += spans[i];
        copies[first] = std::max(copies[first], copies[i]);
      }
      most = std::max(most, ++copies[first]);
      spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                  spans.begin() + static_cast<std::ptrdiff_t>(end));
      copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                   copies.begin() + static_cast<std::ptrdiff_t>(end));
    }
    EXPECT_LE(spans.size(), 600U / 64 + 8 + 3);
  }
  EXPECT_LE(most, 4U);
}

TEST(DeltaJob, TakesTheWindowOnlyIntoShortSpans) {
  const auto volumes = volumes_of_spans(std::vector<std::uint32_t>(4, 4));
  EXPECT_FALSE(next_delta_job(volumes, versions_up_to(17), 2, fan(4)))
      << "16 and 17 are the window";
  EXPECT_TRUE(next_delta_job(volumes, versions_up_to(18), 2, fan(4)));
  EXPECT_TRUE(next_delta_job(volumes_of_spans({1, 1}), versions_up_to(3), 4, fan(4)));
}

TEST(DeltaJob, TakesMostlyDeadVolumesAlone) {
  auto volumes = volumes_of_spans({2, 1});
  EXPECT_FALSE(next_delta_job(volumes, versions_up_to(5), 2, fan(4)));
  volumes[1].live_bytes = 400;
  const auto job = next_delta_job(volumes, versions_up_to(5), 2, fan(4));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->volumes.size(), 1U);
  EXPECT_EQ(job->death, VersionNumber{3});
}

}  // namespace
}  // namespace varve::layout
