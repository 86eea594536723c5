// SPDX-License-Identifier: Apache-2.0
#include "ingest/capping_policy.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace varve::ingest {

CappingPolicy::CappingPolicy(const RewriteInput& input, SparseContainers sparse, double limit)
    : sparse_(std::move(sparse)), budget_(limit, input.logical_bytes) {
  count_sparse(sparse_.size());
}

void CappingPolicy::decide(std::span<const DedupCandidate> candidates,
                           std::span<DedupDecision> decisions) {
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const DedupCandidate& candidate = candidates[i];
    if (segment_left_ == 0) begin_segment(candidates.subspan(i));
    segment_left_ -= std::min<std::uint64_t>(segment_left_, candidate.bytes);
    if (!may_rewrite(candidate)) continue;
    if (sparse_.hold(candidate) || capped_.contains(format_as(*candidate.container))) {
      decisions[i] = DedupDecision::kStoreAgain;
    }
  }
}

void CappingPolicy::begin_segment(std::span<const DedupCandidate> candidates) {
  capped_.clear();
  std::unordered_map<std::uint32_t, std::uint64_t> bytes_of;
  std::unordered_set<std::uint64_t> counted;  // A chunk counts once.
  for (const auto& candidate : candidates) {
    if (segment_left_ >= kSegmentBytes) break;
    segment_left_ += candidate.bytes;
    if (!may_rewrite(candidate) || sparse_.hold(candidate)) continue;
    if (!counted.insert(candidate.stored->value).second) continue;
    bytes_of[format_as(*candidate.container)] += candidate.bytes;
  }
  budget_.see(segment_left_);
  if (bytes_of.size() <= kContainers) return;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> ascending;
  for (const auto& [container, bytes] : bytes_of) ascending.emplace_back(bytes, container);
  std::sort(ascending.begin(), ascending.end());
  for (std::size_t i = 0; i + kContainers < ascending.size(); ++i) {
    if (!budget_.spend(ascending[i].first)) break;
    capped_.insert(ascending[i].second);
  }
}

}  // namespace varve::ingest
