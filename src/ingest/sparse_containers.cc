// SPDX-License-Identifier: Apache-2.0
#include "ingest/sparse_containers.h"

#include <algorithm>
#include <cstdint>

namespace varve::ingest {

SparseContainers::SparseContainers(const RewriteInput& input) {
  std::vector<ContainerUse> sparse;
  for (const auto& use : input.containers) {
    if (static_cast<double>(use.referenced_bytes) <
        kSparseBelow * static_cast<double>(use.raw_bytes)) {
      sparse.push_back(use);
    }
  }
  // a.referenced / a.raw < b.referenced / b.raw, without division.
  std::sort(sparse.begin(), sparse.end(), [](const ContainerUse& a, const ContainerUse& b) {
    const auto left = a.referenced_bytes * b.raw_bytes;
    const auto right = b.referenced_bytes * a.raw_bytes;
    return left != right ? left < right : a.container < b.container;
  });
  const auto limit =
      static_cast<std::uint64_t>(kSparseBytesShare * static_cast<double>(input.logical_bytes));
  std::uint64_t predicted = 0;
  for (const auto& use : sparse) {
    predicted += use.referenced_bytes;
    if (predicted > limit && !numbers_.empty()) break;
    numbers_.push_back(use.container);
  }
  std::sort(numbers_.begin(), numbers_.end());
}

bool SparseContainers::hold(const DedupCandidate& candidate) const {
  return may_rewrite(candidate) &&
         std::binary_search(numbers_.begin(), numbers_.end(), *candidate.container);
}

}  // namespace varve::ingest
