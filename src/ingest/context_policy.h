// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingest/rewrite_budget.h"
#include "ingest/rewrite_policy.h"
#include "ingest/sparse_containers.h"
#include "ingest/utility_threshold.h"

namespace varve::ingest {

/// Context-based rewriting (CBR; Kaczmarczyk et al., SYSTOR'12 §4): rewrites a duplicate if the
/// stream context, the 20 MB from the duplicate on, uses little of the duplicate's container. The
/// rewrite utility is the unused part of the container. A chunk is rewritten if the rewrite utility
/// reaches an adaptive threshold. Otherwise the container counts as not fragmented, and the
/// container's chunks in the context are also kept. The paper's disk context is an area around the
/// block; here the container takes its place, as in ATC'14 §6.1.
class ContextPolicy final : public RewritePolicy {
 public:
  static constexpr std::uint64_t kContextBytes = 20U << 20;

  /// Rewrites also the chunks in `sparse`, without counting them.
  ContextPolicy(const RewriteInput& input, SparseContainers sparse, double limit);

  [[nodiscard]] std::size_t look_ahead_bytes() const override { return kContextBytes; }
  void decide(std::span<const DedupCandidate> candidates,
              std::span<DedupDecision> decisions) override;

 private:
  [[nodiscard]] std::uint64_t raw_bytes_of(ContainerNumber container) const;
  [[nodiscard]] DedupDecision judge(const DedupCandidate& candidate, std::uint64_t context_bytes);
  void forget_old();

  const SparseContainers sparse_;
  RewriteBudget budget_;
  UtilityThreshold threshold_;
  std::vector<std::pair<ContainerNumber, std::uint64_t>> raw_bytes_;  // Ascending.
  std::uint64_t typical_bytes_ = 0;  // Raw size of a container missing in raw_bytes_.
  // Unfragmented containers, each with the end of the context for which the decision holds.
  std::unordered_map<std::uint32_t, std::uint64_t> kept_until_;
  std::size_t forget_at_ = 1024;
};

}  // namespace varve::ingest
