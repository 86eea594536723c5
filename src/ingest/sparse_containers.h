// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "ingest/dedup_policy.h"
#include "ingest/rewrite_policy.h"

namespace varve::ingest {

/// Containers that a version uses by less than half are sparse.
inline constexpr double kSparseBelow = 0.5;
/// The sparse containers whose chunks the next version rewrites have at most this part of the
/// version's size: about the largest share that the paper reports for a data set (1.99 %). The
/// least used one may exceed it, because a small version would rewrite nothing otherwise.
inline constexpr double kSparseBytesShare = 0.02;

/// The sparse containers that a version inherits from the one before (S_inherited of HAR, ATC'14
/// §5.2). An empty set is that of no version.
class SparseContainers {
 public:
  SparseContainers() = default;
  /// Takes the sparse containers, the least used first, until rewriting all their used chunks would
  /// exceed kSparseBytesShare of the version, but at least one. Algorithm 1 of the paper has no
  /// such limit and counts each occurrence of a chunk.
  explicit SparseContainers(const RewriteInput& input);

  [[nodiscard]] std::size_t size() const { return numbers_.size(); }
  /// Returns whether the candidate's copy is in a sparse container of the pool.
  [[nodiscard]] bool hold(const DedupCandidate& candidate) const;

 private:
  std::vector<ContainerNumber> numbers_;  // Ascending.
};

/// Returns whether a policy may have the candidate stored again: its copy is in a written container
/// of the pool.
[[nodiscard]] inline bool may_rewrite(const DedupCandidate& candidate) {
  return candidate.stored && candidate.container && is_pool(*candidate.container);
}

}  // namespace varve::ingest
