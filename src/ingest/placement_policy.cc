// SPDX-License-Identifier: Apache-2.0
#include "ingest/placement_policy.h"

#include <utility>

namespace varve::ingest {

PlacementPolicy::PlacementPolicy(Placement placement, std::unique_ptr<RewritePolicy> rewrite,
                                 const PoolMetrics* metrics)
    : placement_(placement),
      rewrite_(placement == Placement::kLineage ? nullptr : std::move(rewrite)),
      metrics_(metrics) {
  if (rewrite_) counts_.sparse_containers = rewrite_->sparse_containers();
}

DedupPolicy::Wants PlacementPolicy::wants() const {
  switch (placement_) {
    case Placement::kLineage:
      return Wants::kNothing;
    case Placement::kLineagePool:
      return Wants::kContainers;
    case Placement::kPool:
      break;
  }
  return rewrite_ ? Wants::kContainers : Wants::kChunks;
}

std::size_t PlacementPolicy::look_ahead_bytes() const {
  return rewrite_ ? rewrite_->look_ahead_bytes() : 0;
}

bool PlacementPolicy::belongs_in_pool(const DedupCandidate& candidate) const {
  if (candidate.stored) return false;
  return placement_ == Placement::kPool ||
         (placement_ == Placement::kLineagePool && candidate.elsewhere);
}

void PlacementPolicy::decide(std::span<const DedupCandidate> candidates,
                             std::span<DedupDecision> decisions) {
  if (rewrite_) rewrite_->decide(candidates, decisions);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (belongs_in_pool(candidates[i])) decisions[i] = DedupDecision::kShare;
  }
}

void PlacementPolicy::on_stored(const DedupTally& tally) {
  RewriteCounts more;
  more.kept_chunks = tally.kept_in_pool_chunks;
  more.kept_bytes = tally.kept_in_pool_bytes;
  more.rewritten_chunks = tally.again_chunks;
  more.rewritten_bytes = tally.again_bytes;
  if (placement_ == Placement::kLineagePool) {
    more.promoted_chunks = tally.shared_chunks;
    more.promoted_bytes = tally.shared_bytes;
  }
  continue_from(more);
  if (metrics_ == nullptr) return;
  metrics_->kept_chunks.add(more.kept_chunks);
  metrics_->kept_bytes.add(more.kept_bytes);
  metrics_->rewritten_chunks.add(more.rewritten_chunks);
  metrics_->rewritten_bytes.add(more.rewritten_bytes);
  metrics_->promoted_chunks.add(more.promoted_chunks);
  metrics_->promoted_bytes.add(more.promoted_bytes);
}

RewriteCounts PlacementPolicy::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void PlacementPolicy::continue_from(const RewriteCounts& earlier) {
  const std::lock_guard lock(mutex_);
  counts_.kept_chunks += earlier.kept_chunks;
  counts_.kept_bytes += earlier.kept_bytes;
  counts_.rewritten_chunks += earlier.rewritten_chunks;
  counts_.rewritten_bytes += earlier.rewritten_bytes;
  counts_.promoted_chunks += earlier.promoted_chunks;
  counts_.promoted_bytes += earlier.promoted_bytes;
}

}  // namespace varve::ingest
