// SPDX-License-Identifier: Apache-2.0
#include "ingest/context_policy.h"

#include <algorithm>

namespace varve::ingest {

namespace {

constexpr std::uint64_t kContainerBytes = 4U << 20;

/// The chunks of the stream context, which advances with the stream.
class StreamContext {
 public:
  void add(const DedupCandidate& candidate) {
    bytes_ += candidate.bytes;
    if (!may_rewrite(candidate)) return;
    if (count_[candidate.stored->value]++ == 0) {
      of_container_[format_as(*candidate.container)] += candidate.bytes;
    }
  }
  void remove(const DedupCandidate& candidate) {
    bytes_ -= candidate.bytes;
    if (!may_rewrite(candidate)) return;
    if (--count_[candidate.stored->value] == 0) {
      of_container_[format_as(*candidate.container)] -= candidate.bytes;
    }
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Returns the size of the container's chunks in the context, each counted once.
  [[nodiscard]] std::uint64_t bytes_in(ContainerNumber container) const {
    const auto found = of_container_.find(format_as(container));
    return found == of_container_.end() ? 0 : found->second;
  }

 private:
  std::uint64_t bytes_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> count_;  // Chunk id → occurrences.
  std::unordered_map<std::uint32_t, std::uint64_t> of_container_;
};

}  // namespace

ContextPolicy::ContextPolicy(const RewriteInput& input, SparseContainers sparse, double limit)
    : sparse_(std::move(sparse)), budget_(limit, input.logical_bytes) {
  count_sparse(sparse_.size());
  std::uint64_t total = 0;
  for (const auto& use : input.containers) {
    raw_bytes_.emplace_back(use.container, use.raw_bytes);
    total += use.raw_bytes;
  }
  std::sort(raw_bytes_.begin(), raw_bytes_.end());
  typical_bytes_ =
      std::max(kContainerBytes, total / std::max<std::uint64_t>(1, input.containers.size()));
}

void ContextPolicy::decide(std::span<const DedupCandidate> candidates,
                           std::span<DedupDecision> decisions) {
  StreamContext context;
  std::size_t end = 0;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const DedupCandidate& candidate = candidates[i];
    while (end < candidates.size() && (end == i || context.bytes() < kContextBytes)) {
      context.add(candidates[end++]);
    }
    if (sparse_.hold(candidate)) {
      decisions[i] = DedupDecision::kStoreAgain;
    } else if (may_rewrite(candidate)) {
      decisions[i] = judge(candidate, context.bytes_in(*candidate.container));
    }
    budget_.see(candidate.bytes);
    context.remove(candidate);
  }
  forget_old();
}

DedupDecision ContextPolicy::judge(const DedupCandidate& candidate, std::uint64_t context_bytes) {
  std::uint64_t& kept_until = kept_until_[format_as(*candidate.container)];
  const std::uint64_t position = budget_.seen();
  if (position < kept_until) return DedupDecision::kRefer;
  const auto whole = static_cast<double>(raw_bytes_of(*candidate.container));
  const double utility = std::max(0.0, 1 - static_cast<double>(context_bytes) / whole);
  threshold_.add(utility, candidate.bytes);
  threshold_.follow(static_cast<std::uint64_t>(budget_.limit() *
                                               static_cast<double>(position + candidate.bytes)));
  if (utility >= threshold_.value() && budget_.spend(candidate.bytes)) {
    return DedupDecision::kStoreAgain;
  }
  kept_until = position + kContextBytes;
  return DedupDecision::kRefer;
}

std::uint64_t ContextPolicy::raw_bytes_of(ContainerNumber container) const {
  const auto found = std::lower_bound(raw_bytes_.begin(), raw_bytes_.end(),
                                      std::pair(container, std::uint64_t{0}));
  if (found == raw_bytes_.end() || found->first != container) return typical_bytes_;
  return std::max<std::uint64_t>(found->second, 1);
}

void ContextPolicy::forget_old() {
  if (kept_until_.size() < forget_at_) return;
  std::erase_if(kept_until_, [&](const auto& entry) { return entry.second <= budget_.seen(); });
  forget_at_ = std::max<std::size_t>(1024, 2 * kept_until_.size());
}

}  // namespace varve::ingest
