// SPDX-License-Identifier: Apache-2.0
#include "restore/assembly_area.h"

#include <algorithm>

namespace varve::restore {

void AssemblyArea::mark_bad(std::size_t offset, std::size_t bytes) {
  bad_.push_back({offset, offset + bytes});
}

void AssemblyArea::lend(std::size_t offset, std::span<const std::byte> bytes,
                        std::shared_ptr<const void> holder) {
  lent_.push_back({{offset, offset + bytes.size()}, bytes.data(), std::move(holder)});
}

void AssemblyArea::finish() {
  std::sort(bad_.begin(), bad_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::ranges::sort(lent_, {}, [](const Lent& one) { return one.range.begin; });
  // Neighbouring frames that are also consecutive in memory form a single piece for readers.
  std::size_t last = 0;
  for (std::size_t i = 1; i < lent_.size(); ++i) {
    Lent& before = lent_[last];
    Lent& one = lent_[i];
    if (before.range.end == one.range.begin && before.holder == one.holder &&
        before.bytes + (before.range.end - before.range.begin) == one.bytes) {
      before.range.end = one.range.end;
    } else if (++last != i) {
      lent_[last] = std::move(one);
    }
  }
  if (!lent_.empty()) lent_.resize(last + 1);
}

std::span<const std::byte> AssemblyArea::view(std::size_t offset, std::size_t bytes) const {
  for (const Lent& one : lent_) {
    if (offset < one.range.begin || offset >= one.range.end) continue;
    return {one.bytes + (offset - one.range.begin), bytes};
  }
  return {buffer_.data() + offset, bytes};
}

/// Returns the end of the memory holding a byte, or of the area.
std::size_t AssemblyArea::end_in_memory(std::size_t offset) const {
  std::size_t end = size_;
  for (const Lent& one : lent_) {
    if (one.range.begin > offset) {
      end = std::min(end, one.range.begin);
    } else if (offset < one.range.end) {
      return one.range.end;
    }
  }
  return end;
}

std::size_t AssemblyArea::good_bytes(std::uint64_t position) const {
  if (position < position_ || position >= end()) return 0;
  const auto offset = static_cast<std::size_t>(position - position_);
  // The ranges are whole chunks and thus disjoint, so the ends of the ranges ascend as well.
  const auto next = std::upper_bound(bad_.begin(), bad_.end(), offset,
                                     [](std::size_t at, const Range& r) { return at < r.end; });
  const auto end = end_in_memory(offset);
  if (next == bad_.end()) return end - offset;
  return next->begin <= offset ? 0 : std::min(next->begin, end) - offset;
}

}  // namespace varve::restore
