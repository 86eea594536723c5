// SPDX-License-Identifier: Apache-2.0
// Decides when a cache of several streams estimates the streams' localities again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve::index {

/// Counts arrivals. An interval is a number of arrivals: the entries of the cache times 1 - d, at
/// least 0.1 and at most 0.9, where d is the share of found arrivals. After an event (a stream came
/// or went, or the share of hits dropped), a quarter of the interval is enough. Not thread-safe.
class EstimationInterval {
 public:
  explicit EstimationInterval(std::size_t entries);

  /// Counts an arrival. `is_hit`: whether a duplicate was found by any means.
  void arrive(bool is_hit);
  void note_event() { has_event_ = true; }
  /// Returns whether the interval has ended.
  [[nodiscard]] bool has_ended() const;
  /// Sets the length of the next interval by the share of hits.
  void set_next_length();
  /// Begins the next interval.
  void begin();

  /// Returns the length of the interval, in arrivals.
  [[nodiscard]] std::uint64_t length() const { return length_; }
  /// Returns the arrivals since the begin of the interval.
  [[nodiscard]] std::uint64_t arrivals() const { return arrivals_; }

 private:
  void note_ratio();

  const std::size_t entries_;
  std::uint64_t length_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t part_arrivals_ = 0;  // Arrivals in this eighth of an interval.
  std::uint64_t part_hits_ = 0;
  double mean_ratio_ = 0;  // Share of hits, exponentially weighted.
  bool has_ratio_ = false;
  bool has_event_ = false;
};

}  // namespace varve::index
