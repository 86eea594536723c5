// SPDX-License-Identifier: Apache-2.0
#include "restore/assembly_area.h"

#include <algorithm>

namespace varve::restore {

void AssemblyArea::mark_bad(std::size_t offset, std::size_t bytes) {
  bad_.push_back({offset, offset + bytes});
}

void AssemblyArea::finish() {
  std::sort(bad_.begin(), bad_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

std::size_t AssemblyArea::good_bytes(std::uint64_t position) const {
  if (position < position_ || position >= end()) return 0;
  const auto offset = static_cast<std::size_t>(position - position_);
  // The ranges are whole chunks and thus disjoint, so their ends ascend as well.
  const auto next = std::upper_bound(bad_.begin(), bad_.end(), offset,
                                     [](std::size_t at, const Range& r) { return at < r.end; });
  if (next == bad_.end()) return size_ - offset;
  return next->begin <= offset ? 0 : next->begin - offset;
}

}  // namespace varve::restore
