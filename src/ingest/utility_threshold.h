// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace varve::ingest {

/// Follows the rewrite utility reached only by a given part of the data (SYSTOR'12 §4). Counts
/// bytes in 10^4 buckets of utility.
class UtilityThreshold {
 public:
  static constexpr std::size_t kBuckets = 10000;
  static constexpr double kLowest = 0.5;  ///< The threshold is never lower.

  /// Counts a chunk. `utility` is from 0 to 1.
  void add(double utility, std::uint64_t bytes) {
    const auto bucket = std::min(static_cast<std::size_t>(utility * kBuckets), kBuckets - 1);
    bytes_[bucket] += bytes;
    if (bucket >= first_) reached_ += bytes;
  }
  /// Moves the threshold to the lowest utility reached by at most `bytes_max` of the counted bytes.
  void follow(std::uint64_t bytes_max) {
    while (first_ < kBuckets && reached_ > bytes_max) reached_ -= bytes_[first_++];
    while (first_ > kFirstBucket && reached_ + bytes_[first_ - 1] <= bytes_max) {
      reached_ += bytes_[--first_];
    }
  }
  [[nodiscard]] double value() const { return static_cast<double>(first_) / kBuckets; }

 private:
  static constexpr auto kFirstBucket = static_cast<std::size_t>(kLowest * kBuckets);

  std::array<std::uint64_t, kBuckets> bytes_{};
  std::size_t first_ = kFirstBucket;  // Buckets from here on are above the threshold.
  std::uint64_t reached_ = 0;         // Bytes in the buckets from first_ on.
};

}  // namespace varve::ingest
