// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>

#include "ingest/rewrite_budget.h"
#include "ingest/rewrite_policy.h"
#include "ingest/sparse_containers.h"

namespace varve::ingest {

/// Capping (CAP; Lillibridge et al., FAST'13 §4): a segment of 20 MB refers to the kContainers
/// containers with most of its bytes, and rewrites all other duplicates. A segment is shorter where
/// the look-ahead knows less data. Within the rewrite limit, the least used containers come first.
class CappingPolicy final : public RewritePolicy {
 public:
  static constexpr std::uint64_t kSegmentBytes = 20U << 20;
  static constexpr std::size_t kContainers = 14;

  /// Rewrites also the chunks in `sparse`, without counting them.
  CappingPolicy(const RewriteInput& input, SparseContainers sparse, double limit);

  [[nodiscard]] std::size_t look_ahead_bytes() const override { return kSegmentBytes; }
  void decide(std::span<const DedupCandidate> candidates,
              std::span<DedupDecision> decisions) override;

 private:
  void begin_segment(std::span<const DedupCandidate> candidates);

  const SparseContainers sparse_;
  RewriteBudget budget_;
  std::uint64_t segment_left_ = 0;            // Bytes of the segment not yet seen by decide().
  std::unordered_set<std::uint32_t> capped_;  // The segment's containers to rewrite.
};

}  // namespace varve::ingest
