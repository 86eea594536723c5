// SPDX-License-Identifier: Apache-2.0
// Each rewriting policy beside a slow one that follows the text of the paper.
#include "ingest/rewrite_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "policy_data.h"

namespace varve::ingest {
namespace {

using test::decide_all;
using test::pool_container;
using test::random_candidates;

constexpr std::uint64_t kMiB = 1U << 20;

/// Random use of `containers` containers by the version before.
RewriteInput random_input(std::uint32_t containers, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RewriteInput input;
  for (std::uint32_t i = 0; i < containers; ++i) {
    ContainerUse use;
    use.container = pool_container(i);
    use.raw_bytes = i == containers - 1 ? 100000 : 4 * kMiB + random() % kMiB;
    use.referenced_bytes = use.raw_bytes * (random() % 1001) / 1000;
    input.containers.push_back(use);
    input.logical_bytes += use.referenced_bytes;
  }
  std::shuffle(input.containers.begin(), input.containers.end(), random);
  return input;
}

// ATC'14 §4.1: a container is sparse if the version uses less than half of it. They are taken the
// least used first, up to 2 % of the version.
std::set<ContainerNumber> sparse_by_text(const RewriteInput& input) {
  std::set<ContainerNumber> taken;
  double left = 0.02 * static_cast<double>(input.logical_bytes);
  for (;;) {
    const ContainerUse* best = nullptr;
    double least = 0.5;
    for (const auto& use : input.containers) {
      const double utilisation =
          static_cast<double>(use.referenced_bytes) / static_cast<double>(use.raw_bytes);
      if (taken.contains(use.container) || utilisation >= least) continue;
      best = &use;
      least = utilisation;
    }
    if (best == nullptr) return taken;
    left -= static_cast<double>(best->referenced_bytes);
    if (left < 0 && !taken.empty()) return taken;
    taken.insert(best->container);
  }
}

bool in_pool(const DedupCandidate& candidate) {
  return candidate.stored && candidate.container && is_pool(*candidate.container);
}

TEST(RewritePolicy, NoneIsNoPolicy) {
  EXPECT_EQ(make_rewrite_policy(Rewrite::kNone, RewriteInput()), nullptr);
}

TEST(RewritePolicy, HarRewritesTheChunksOfSparseContainers) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto input = random_input(60, seed);
    const auto sparse = sparse_by_text(input);
    ASSERT_GT(sparse.size(), 3U);
    const auto policy = make_rewrite_policy(Rewrite::kHar, input);
    EXPECT_EQ(policy->look_ahead_bytes(), 0U);
    EXPECT_EQ(policy->sparse_containers(), sparse.size());
    const auto all = random_candidates(5000, 80, seed);
    const auto decisions = decide_all(*policy, all, 128);
    std::size_t again = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool expected = in_pool(all[i]) && sparse.contains(*all[i].container);
      ASSERT_EQ(decisions[i] == DedupDecision::kStoreAgain, expected) << seed << " " << i;
      again += expected ? 1 : 0;
    }
    EXPECT_GT(again, 0U);
  }
}

TEST(RewritePolicy, HalfUsedContainerIsNotSparse) {
  RewriteInput input;
  input.logical_bytes = 1000 * kMiB;
  input.containers = {{pool_container(1), 2 * kMiB, 4 * kMiB},
                      {pool_container(2), 2 * kMiB - 1, 4 * kMiB},
                      {pool_container(3), 0, 4 * kMiB},
                      {pool_container(4), 4 * kMiB, 4 * kMiB},
                      {pool_container(5), 1000, 1000}};
  const auto policy = make_rewrite_policy(Rewrite::kHar, input);
  EXPECT_EQ(policy->sparse_containers(), 2U);
  const UtilisationHistogram expected = {1, 0, 0, 0, 1, 1, 0, 0, 0, 2};
  EXPECT_EQ(utilisation_histogram(input.containers), expected);
}

TEST(RewritePolicy, HarStopsBeforeTwoPercentOfTheLastVersion) {
  RewriteInput input;
  input.logical_bytes = 100 * kMiB;
  for (std::uint32_t i = 1; i <= 10; ++i) {
    input.containers.push_back({pool_container(i), i * kMiB / 4, 4 * kMiB});
  }
  // 1/4 + 2/4 + 3/4 MiB are 1.5 MiB; the fourth container would make it 2.5 MiB.
  EXPECT_EQ(make_rewrite_policy(Rewrite::kHar, input)->sparse_containers(), 3U);
}

TEST(RewritePolicy, HarTakesOneSparseContainerOfASmallVersion) {
  RewriteInput input;
  input.logical_bytes = 40 * kMiB;
  input.containers = {{pool_container(1), kMiB, 4 * kMiB}, {pool_container(2), kMiB, 3 * kMiB}};
  const auto policy = make_rewrite_policy(Rewrite::kHar, input);
  EXPECT_EQ(policy->sparse_containers(), 1U);
}

// FAST'13 §4, with the rewrite limit: the segment's containers beyond the 14 that hold most of it
// are rewritten, those that hold the least first.
class CapByText {
 public:
  CapByText(const RewriteInput& input, std::set<ContainerNumber> sparse, double limit)
      : last_(static_cast<double>(input.logical_bytes)),
        sparse_(std::move(sparse)),
        limit_(limit) {}

  std::vector<bool> decide(const std::vector<DedupCandidate>& all) {
    std::vector<bool> again(all.size());
    double seen = 0;
    double spent = 0;
    for (std::size_t begin = 0; begin < all.size();) {
      std::map<ContainerNumber, std::map<ChunkId, std::uint32_t>> chunks;
      std::size_t end = begin;
      for (std::uint64_t bytes = 0; end < all.size() && bytes < 20 * kMiB; ++end) {
        bytes += all[end].bytes;
        seen += all[end].bytes;
        if (in_pool(all[end]) && !sparse_.contains(*all[end].container)) {
          chunks[*all[end].container][*all[end].stored] = all[end].bytes;
        }
      }
      std::vector<std::pair<double, ContainerNumber>> ranked;
      for (const auto& [container, held] : chunks) {
        double bytes = 0;
        for (const auto& [id, size] : held) bytes += size;
        ranked.emplace_back(bytes, container);
      }
      std::sort(ranked.rbegin(), ranked.rend());
      std::set<ContainerNumber> rewritten = sparse_;
      while (ranked.size() > 14) {
        if (spent + ranked.back().first > limit_ * std::max(seen, last_)) break;
        spent += ranked.back().first;
        rewritten.insert(ranked.back().second);
        ranked.pop_back();
      }
      for (; begin < end; ++begin) {
        again[begin] = in_pool(all[begin]) && rewritten.contains(*all[begin].container);
      }
    }
    return again;
  }

 private:
  const double last_;
  const std::set<ContainerNumber> sparse_;
  const double limit_;
};

// SYSTOR'12 §4, with containers as disk contexts.
class CbrByText {
 public:
  CbrByText(const RewriteInput& input, std::set<ContainerNumber> sparse, double limit)
      : input_(input), sparse_(std::move(sparse)), limit_(limit) {}

  std::vector<bool> decide(const std::vector<DedupCandidate>& all) {
    std::vector<bool> again(all.size());
    std::vector<std::pair<int, double>> judged;  // Bucket of the utility, and bytes.
    std::map<ContainerNumber, double> kept;
    double seen = 0;
    double spent = 0;
    for (std::size_t i = 0; i < all.size(); seen += all[i++].bytes) {
      if (!in_pool(all[i])) continue;
      const auto container = *all[i].container;
      if (sparse_.contains(container)) {
        again[i] = true;
        continue;
      }
      const auto until = kept.find(container);
      if (until != kept.end() && seen < until->second) continue;
      const double utility = utility_of(all, i);
      judged.emplace_back(std::min(9999, static_cast<int>(utility * 10000)), all[i].bytes);
      const double most = std::floor(limit_ * (seen + all[i].bytes));
      again[i] = utility >= threshold(judged, most) &&
                 spent + all[i].bytes <= limit_ * std::max(seen, double(input_.logical_bytes));
      if (again[i]) {
        spent += all[i].bytes;
      } else {
        kept[container] = seen + 20.0 * kMiB;
      }
    }
    return again;
  }

 private:
  // The lowest utility from 0.5 on that at most `most` bytes reach.
  static double threshold(const std::vector<std::pair<int, double>>& judged, double most) {
    std::set<int> buckets = {5000};
    for (const auto& [bucket, bytes] : judged) buckets.insert(bucket + 1);
    for (const int from : buckets) {
      double reached = 0;
      for (const auto& [bucket, bytes] : judged) reached += bucket >= from ? bytes : 0;
      if (from >= 5000 && reached <= most) return from / 10000.0;
    }
    return 2;
  }
  double utility_of(const std::vector<DedupCandidate>& all, std::size_t at) const {
    const auto container = *all[at].container;
    std::map<ChunkId, double> used;
    double bytes = 0;
    for (std::size_t i = at; i < all.size() && bytes < 20.0 * kMiB; ++i) {
      bytes += all[i].bytes;
      if (in_pool(all[i]) && all[i].container == container) used[*all[i].stored] = all[i].bytes;
    }
    double whole = 0;
    double all_bytes = 0;
    for (const auto& use : input_.containers) {
      if (use.container == container) whole = double(use.raw_bytes);
      all_bytes += double(use.raw_bytes);
    }
    if (whole == 0) {
      const double count = std::max<double>(1, double(input_.containers.size()));
      whole = std::max(4.0 * kMiB, std::floor(all_bytes / count));
    }
    double context = 0;
    for (const auto& [id, size] : used) context += size;
    return std::max(0.0, 1 - context / whole);
  }

  const RewriteInput& input_;
  const std::set<ContainerNumber> sparse_;
  const double limit_;
};

struct Case {
  Rewrite rewrite;
  bool after_har;
  double limit;
};

template <typename Text>
void compare(const Case& tried, std::uint64_t seed, std::size_t count, std::size_t segment) {
  const auto input = random_input(40, seed);
  const auto all = random_candidates(count, 60, seed);
  const auto policy = make_rewrite_policy(tried.rewrite, input);
  EXPECT_EQ(policy->look_ahead_bytes(), 20 * kMiB);
  const auto decisions = decide_all(*policy, all, segment);
  const auto sparse = tried.after_har ? sparse_by_text(input) : std::set<ContainerNumber>();
  const auto expected = Text(input, sparse, tried.limit).decide(all);
  std::size_t again = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(decisions[i] == DedupDecision::kStoreAgain, expected[i])
        << rewrite_name(tried.rewrite) << " seed " << seed << " candidate " << i;
    if (expected[i] && !sparse.contains(*all[i].container)) ++again;
  }
  EXPECT_GT(again, 0U) << "the test compares nothing";
}

TEST(RewritePolicy, CapAndItsHybridFollowTheText) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (const std::size_t segment : {37, 128, 100000}) {
      compare<CapByText>({Rewrite::kCap, false, 0.05}, seed, 12000, segment);
      compare<CapByText>({Rewrite::kHarCap, true, 0.005}, seed, 12000, segment);
    }
  }
}

TEST(RewritePolicy, CbrAndItsHybridFollowTheText) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    for (const std::size_t segment : {128, 100000}) {
      compare<CbrByText>({Rewrite::kCbr, false, 0.05}, seed, 6000, segment);
      compare<CbrByText>({Rewrite::kHarCbr, true, 0.005}, seed, 6000, segment);
    }
  }
}

TEST(RewritePolicy, OnlyWrittenCopiesInThePoolAreRewritten) {
  for (const auto rewrite :
       {Rewrite::kHar, Rewrite::kCap, Rewrite::kCbr, Rewrite::kHarCap, Rewrite::kHarCbr}) {
    const auto policy = make_rewrite_policy(rewrite, random_input(60, 7));
    const auto all = random_candidates(8000, 60, 8);
    const auto decisions = decide_all(*policy, all, 100);
    std::uint64_t bytes = 0;
    std::uint64_t again = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      bytes += all[i].bytes;
      if (decisions[i] == DedupDecision::kRefer) continue;
      ASSERT_EQ(decisions[i], DedupDecision::kStoreAgain);
      ASSERT_TRUE(in_pool(all[i]));
      again += all[i].bytes;
    }
    EXPECT_GT(again, 0U) << rewrite_name(rewrite);
    EXPECT_LT(again, bytes);
  }
}

TEST(RewritePolicy, LessDataAheadAndRepeatedSegmentsAreAllowed) {
  std::mt19937_64 random(9);
  for (const auto rewrite : {Rewrite::kCap, Rewrite::kCbr, Rewrite::kHarCap, Rewrite::kHarCbr}) {
    const auto policy = make_rewrite_policy(rewrite, random_input(60, 10));
    const auto all = random_candidates(20000, 60, 11);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t shown = std::min<std::size_t>(random() % 3000, all.size() - at);
      std::vector<DedupDecision> decisions(random() % (shown + 1), DedupDecision::kRefer);
      policy->decide(std::span(all).subspan(at, shown), decisions);
      for (std::size_t i = 0; i < decisions.size(); ++i) {
        ASSERT_TRUE(decisions[i] == DedupDecision::kRefer || in_pool(all[at + i]));
      }
      // After an error, the rest of a segment comes again.
      at += random() % 4 == 0 ? decisions.size() / 2 : decisions.size();
      if (shown == 0) ++at;
    }
  }
}

}  // namespace
}  // namespace varve::ingest
