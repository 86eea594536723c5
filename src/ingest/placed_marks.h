// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/coding.h"
#include "varve/types.h"

namespace varve::ingest {

/// Remembers the chunks placed by the pipeline since the oldest lookup still in use. Such a lookup
/// does not know the chunks, so their content must be looked up again. Not thread-safe.
class PlacedMarks {
 public:
  /// A point in the order of placing.
  using Mark = std::uint64_t;

  /// Returns the present point, recorded by a lookup at its beginning.
  [[nodiscard]] Mark now() const { return placed_; }
  /// Records a placed chunk.
  void add(const Fingerprint& fingerprint) {
    const auto prefix = prefix_of(fingerprint);
    last_[prefix] = ++placed_;
    order_.emplace_back(placed_, prefix);
  }
  /// Returns whether a chunk with the content was placed after `mark`. May return true for another
  /// content, with the probability of a collision of 64 bits.
  [[nodiscard]] bool placed_after(const Fingerprint& fingerprint, Mark mark) const {
    const auto found = last_.find(prefix_of(fingerprint));
    return found != last_.end() && found->second > mark;
  }
  /// Forgets the chunks placed up to `mark`.
  void forget_until(Mark mark) {
    if (mark == placed_) {
      order_.clear();
      last_.clear();
      return;
    }
    for (; !order_.empty() && order_.front().first <= mark; order_.pop_front()) {
      const auto found = last_.find(order_.front().second);
      if (found != last_.end() && found->second <= mark) last_.erase(found);
    }
  }

 private:
  static std::uint64_t prefix_of(const Fingerprint& fingerprint) {
    return base::load_le<std::uint64_t>(fingerprint.data());
  }

  Mark placed_ = 0;
  std::unordered_map<std::uint64_t, Mark> last_;      // Prefix of a fingerprint → last mark.
  std::deque<std::pair<Mark, std::uint64_t>> order_;  // Marks with their prefixes, ascending.
};

}  // namespace varve::ingest
