// SPDX-License-Identifier: Apache-2.0
#include "ingest/placement_policy.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "policy_data.h"

namespace varve::ingest {
namespace {

using test::decide_all;
using test::fingerprint_of;
using test::random_candidates;

/// Candidates that another series has, that are stored, or that are new, in runs of 1 to 32.
std::vector<DedupCandidate> with_elsewhere(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<DedupCandidate> all;
  while (all.size() < count) {
    const auto kind = random() % 3;
    const std::size_t run = 1 + random() % (1ULL << random() % 6);
    for (std::size_t i = 0; i < run; ++i) {
      DedupCandidate one;
      one.fingerprint = fingerprint_of(all.size());
      one.bytes = 8192;
      one.elsewhere = kind == 0;
      if (kind == 1) one.stored = ChunkId::make(VersionNumber{1}, 7);
      all.push_back(one);
    }
  }
  all.resize(count);
  return all;
}

TEST(PlacementPolicy, LineageIsNeverAsked) {
  RewriteInput input;
  PlacementPolicy policy(Placement::kLineage, make_rewrite_policy(Rewrite::kHarCap, input));
  EXPECT_EQ(policy.wants(), DedupPolicy::Wants::kNothing);
  EXPECT_EQ(policy.look_ahead_bytes(), 0U);
}

TEST(PlacementPolicy, PoolSharesAllThatIsNew) {
  for (const auto rewrite : {Rewrite::kNone, Rewrite::kHar, Rewrite::kCbr}) {
    PlacementPolicy policy(Placement::kPool, make_rewrite_policy(rewrite, RewriteInput()));
    EXPECT_EQ(policy.wants(), rewrite == Rewrite::kNone ? DedupPolicy::Wants::kChunks
                                                        : DedupPolicy::Wants::kContainers);
    const auto alone = make_rewrite_policy(rewrite, RewriteInput());
    EXPECT_EQ(policy.look_ahead_bytes(), alone ? alone->look_ahead_bytes() : 0U);
    const auto all = random_candidates(8000, 60, 3);
    const auto expected = alone ? decide_all(*alone, all, 100)
                                : std::vector<DedupDecision>(all.size(), DedupDecision::kRefer);
    const auto decisions = decide_all(policy, all, 100);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(decisions[i], all[i].stored ? expected[i] : DedupDecision::kShare);
    }
  }
}

// A chunk that is not promoted would be stored once in each series that has it.
TEST(PlacementPolicy, EachChunkOfAnotherSeriesIsPromoted) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto all = with_elsewhere(4000, seed);
    for (const std::size_t segment : {1, 7, 100, 5000}) {
      PlacementPolicy policy(Placement::kLineagePool, nullptr);
      EXPECT_EQ(policy.wants(), DedupPolicy::Wants::kContainers);
      EXPECT_EQ(policy.look_ahead_bytes(), 0U);
      const auto decisions = decide_all(policy, all, segment);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto expected = all[i].elsewhere ? DedupDecision::kShare : DedupDecision::kRefer;
        ASSERT_EQ(decisions[i], expected) << seed << " " << segment << " " << i;
      }
    }
  }
}

TEST(PlacementPolicy, PromotionLeavesDuplicatesToTheRewritingPolicy) {
  auto all = random_candidates(8000, 60, 5);
  std::mt19937_64 random(6);
  for (auto& one : all) one.elsewhere = !one.stored && random() % 2 == 0;
  for (const auto rewrite : {Rewrite::kHar, Rewrite::kCbr, Rewrite::kHarCap}) {
    const auto alone = make_rewrite_policy(rewrite, RewriteInput());
    PlacementPolicy policy(Placement::kLineagePool, make_rewrite_policy(rewrite, RewriteInput()));
    EXPECT_EQ(policy.look_ahead_bytes(), alone->look_ahead_bytes());
    const auto expected = decide_all(*alone, all, 100);
    const auto decisions = decide_all(policy, all, 100);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(decisions[i], all[i].elsewhere ? DedupDecision::kShare : expected[i]);
    }
  }
}

TEST(PlacementPolicy, CountsWhatConcernsThePool) {
  DedupTally tally;
  tally.fresh_chunks = 9;
  tally.fresh_bytes = 900;
  tally.shared_chunks = 4;
  tally.shared_bytes = 400;
  tally.kept_chunks = 5;
  tally.kept_bytes = 500;
  tally.kept_in_pool_chunks = 2;
  tally.kept_in_pool_bytes = 200;
  tally.again_chunks = 3;
  tally.again_bytes = 30;
  RewriteInput input;
  input.logical_bytes = 1U << 30;
  input.containers = {{static_cast<ContainerNumber>(kPoolBit + 1), 10, 1000}};
  for (const auto placement : {Placement::kPool, Placement::kLineagePool}) {
    base::Metrics registry;
    const PoolMetrics metrics(registry);
    PlacementPolicy policy(placement, make_rewrite_policy(Rewrite::kHar, input), &metrics);
    const std::uint64_t promotes = placement == Placement::kLineagePool ? 1 : 0;
    policy.continue_from({100, 1000, 10, 100, 1, 1, 77});
    policy.on_stored(tally);
    policy.on_stored(tally);
    const RewriteCounts expected{104, 1400, 16, 160, 1 + 8 * promotes, 1 + 800 * promotes, 1};
    EXPECT_EQ(policy.counts(), expected);
    // An earlier process had metrics of its own.
    EXPECT_EQ(metrics.kept_chunks.value(), 4U);
    EXPECT_EQ(metrics.kept_bytes.value(), 400U);
    EXPECT_EQ(metrics.rewritten_chunks.value(), 6U);
    EXPECT_EQ(metrics.rewritten_bytes.value(), 60U);
    EXPECT_EQ(metrics.promoted_chunks.value(), 8 * promotes);
    EXPECT_EQ(metrics.promoted_bytes.value(), 800 * promotes);
  }
}

}  // namespace
}  // namespace varve::ingest
