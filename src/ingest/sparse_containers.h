// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "ingest/dedup_policy.h"
#include "ingest/rewrite_policy.h"

namespace varve::ingest {

/// Sparse containers: a version uses less than half of the container.
inline constexpr double kSparseBelow = 0.5;
/// Limit for the rewritten chunks of sparse containers, as a part of the version's size: about the
/// largest share reported by the paper for a data set (1.99 %). The least used container may exceed
/// the limit, because a small version would rewrite nothing otherwise.
inline constexpr double kSparseBytesShare = 0.02;

/// The sparse containers inherited from the preceding version (S_inherited of HAR, ATC'14 §5.2).
/// Without a preceding version, the set is empty.
class SparseContainers {
 public:
  SparseContainers() = default;
  /// Takes the sparse containers, the least used first, until rewriting all their used chunks would
  /// exceed kSparseBytesShare of the version, but at least one container. Algorithm 1 of the paper
  /// has no such limit and counts each occurrence of a chunk.
  explicit SparseContainers(const RewriteInput& input);

  [[nodiscard]] std::size_t size() const { return numbers_.size(); }
  /// Returns whether the candidate's copy is in a sparse container of the pool.
  [[nodiscard]] bool hold(const DedupCandidate& candidate) const;

 private:
  std::vector<ContainerNumber> numbers_;  // Ascending.
};

/// Returns whether a policy may have the candidate stored again: the copy is in a written container
/// of the pool.
[[nodiscard]] inline bool may_rewrite(const DedupCandidate& candidate) {
  return candidate.stored && candidate.container && is_pool(*candidate.container);
}

}  // namespace varve::ingest
