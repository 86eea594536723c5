// SPDX-License-Identifier: Apache-2.0
#include "transfer/sparse_regions.h"

#include <algorithm>
#include <utility>

namespace varve::transfer {

void SparseRegions::add(ByteRange range) {
  const std::uint64_t begin = range.begin / kBlockBytes * kBlockBytes;
  const std::uint64_t over = range.end % kBlockBytes;
  const std::uint64_t end =
      std::min(over == 0 ? range.end : range.end - over + kBlockBytes, file_bytes_);
  if (!regions_.empty() && begin < regions_.back().end + hole_bytes_min_) {
    regions_.back().end = std::max(regions_.back().end, end);
    return;
  }
  regions_.push_back({begin, end});
  while (regions_.size() > regions_max_) join_near();
}

// Doubles the minimum length of a hole, and joins regions with shorter holes between them.
void SparseRegions::join_near() {
  hole_bytes_min_ = std::max(hole_bytes_min_ * 2, kBlockBytes);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < regions_.size(); ++i) {
    if (regions_[i].begin < regions_[kept].end + hole_bytes_min_) {
      regions_[kept].end = regions_[i].end;
    } else {
      regions_[++kept] = regions_[i];
    }
  }
  regions_.resize(kept + 1);
}

std::optional<std::vector<ByteRange>> SparseRegions::take() && {
  if (regions_.size() == 1 && regions_[0].begin == 0 && regions_[0].end == file_bytes_) {
    return std::nullopt;
  }
  // GNU tar needs the end of the file as a region, too.
  if (regions_.empty() || regions_.back().end != file_bytes_) {
    regions_.push_back({file_bytes_, file_bytes_});
  }
  return std::move(regions_);
}

}  // namespace varve::transfer
