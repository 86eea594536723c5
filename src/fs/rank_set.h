// SPDX-License-Identifier: Apache-2.0
// A set of entries of a sealed version.
#pragma once

#include <cstddef>
#include <map>

#include "varve/browse.h"

namespace varve::fs {

/// A set of ranks, kept as ranges. Removing a tree in any order by directories leaves few ranges,
/// because the entries below a directory have consecutive ranks. Not thread-safe.
class RankSet {
 public:
  [[nodiscard]] bool contains(Rank rank) const {
    const auto after = ranges_.upper_bound(rank);
    return after != ranges_.begin() && rank < std::prev(after)->second;
  }
  /// Adds a rank, which may be in the set.
  void insert(Rank rank) {
    if (contains(rank)) return;
    const auto after = ranges_.upper_bound(rank);
    Rank end = rank + 1;
    if (after != ranges_.end() && after->first == end) {
      end = after->second;
      ranges_.erase(after);
    }
    const auto next = ranges_.lower_bound(rank);
    if (next != ranges_.begin() && std::prev(next)->second == rank) {
      std::prev(next)->second = end;
    } else {
      ranges_[rank] = end;
    }
  }
  /// Returns the number of ranges, which is what the set costs in memory.
  [[nodiscard]] std::size_t ranges() const { return ranges_.size(); }

 private:
  std::map<Rank, Rank> ranges_;  // Begin and end of each range.
};

}  // namespace varve::fs
