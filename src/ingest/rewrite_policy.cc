// SPDX-License-Identifier: Apache-2.0
#include "ingest/rewrite_policy.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "ingest/capping_policy.h"
#include "ingest/context_policy.h"
#include "ingest/sparse_containers.h"

namespace varve::ingest {

namespace {

/// History-aware rewriting (HAR, ATC'14 §5.2): rewrites the duplicates in the sparse containers of
/// the preceding version. Needs no look-ahead.
class HistoryPolicy final : public RewritePolicy {
 public:
  explicit HistoryPolicy(const RewriteInput& input) : sparse_(input) {
    count_sparse(sparse_.size());
  }
  void decide(std::span<const DedupCandidate> candidates,
              std::span<DedupDecision> decisions) override {
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      if (sparse_.hold(candidates[i])) decisions[i] = DedupDecision::kStoreAgain;
    }
  }

 private:
  const SparseContainers sparse_;
};

}  // namespace

UtilisationHistogram utilisation_histogram(std::span<const ContainerUse> containers) {
  UtilisationHistogram histogram{};
  for (const auto& use : containers) {
    const std::uint64_t raw = std::max<std::uint64_t>(use.raw_bytes, 1);
    const std::uint64_t tenths = use.referenced_bytes * histogram.size() / raw;
    ++histogram[std::min<std::uint64_t>(tenths, histogram.size() - 1)];
  }
  return histogram;
}

std::unique_ptr<RewritePolicy> make_rewrite_policy(Rewrite rewrite, const RewriteInput& input) {
  switch (rewrite) {
    case Rewrite::kNone:
      return nullptr;
    case Rewrite::kHar:
      return std::make_unique<HistoryPolicy>(input);
    case Rewrite::kCap:
      return std::make_unique<CappingPolicy>(input, SparseContainers(), RewriteBudget::kAlone);
    case Rewrite::kCbr:
      return std::make_unique<ContextPolicy>(input, SparseContainers(), RewriteBudget::kAlone);
    case Rewrite::kHarCap:
      return std::make_unique<CappingPolicy>(input, SparseContainers(input),
                                             RewriteBudget::kAfterHar);
    case Rewrite::kHarCbr:
      return std::make_unique<ContextPolicy>(input, SparseContainers(input),
                                             RewriteBudget::kAfterHar);
  }
  VARVE_ASSERT(false);
  return nullptr;
}

}  // namespace varve::ingest
