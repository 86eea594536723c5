// SPDX-License-Identifier: Apache-2.0
// The deduplication policy of a series' open version: selects duplicates to store again, and new
// chunks to store in the pool.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "ingest/dedup_policy.h"
#include "ingest/pool_metrics.h"
#include "ingest/rewrite_policy.h"
#include "varve/placement.h"

namespace varve::ingest {

/// Follows the placement of the series:
/// - lineage: refers to all copies and stores new chunks in the series. Needs no information.
/// - lineage+pool: stores new chunks in the series, except chunks that another series has; such
///   chunks go to the pool (*promotion*). Either place costs the same bytes, and further series
///   find the pool's copy.
/// - pool: stores all new chunks in the pool.
/// With a pool, the policy asks the rewriting policy about duplicates, if there is one.
class PlacementPolicy final : public DedupPolicy {
 public:
  /// `rewrite` may be null: no duplicate is stored again. `metrics` may be null: nothing is
  /// counted. Lifetime: `metrics` outlives the pipeline of the policy.
  PlacementPolicy(Placement placement, std::unique_ptr<RewritePolicy> rewrite,
                  const PoolMetrics* metrics = nullptr);

  [[nodiscard]] Wants wants() const override;
  [[nodiscard]] std::size_t look_ahead_bytes() const override;
  void decide(std::span<const DedupCandidate> candidates,
              std::span<DedupDecision> decisions) override;
  void on_stored(const DedupTally& tally) override;
  [[nodiscard]] RewriteCounts counts() const override;
  void continue_from(const RewriteCounts& earlier) override;

 private:
  [[nodiscard]] bool belongs_in_pool(const DedupCandidate& candidate) const;

  const Placement placement_;
  const std::unique_ptr<RewritePolicy> rewrite_;
  const PoolMetrics* const metrics_;

  mutable std::mutex mutex_;  // Innermost. Guards counts_.
  RewriteCounts counts_;
};

}  // namespace varve::ingest
