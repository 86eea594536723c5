// SPDX-License-Identifier: Apache-2.0
// Limits the requests in flight to a number up to which prefetching pays.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace varve::remote {

/// Finds the number of requests in flight above which a store delivers no more bytes per second.
/// Starts at kLeast and doubles the number as long as doubling gains. The best number grows with
/// the round trip: after 2 ms a store needs a few requests for its full rate, after 100 ms dozens.
/// Not thread-safe.
class AheadWindow {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kLeast = 16;
  static constexpr std::size_t kMost = 64;
  /// Least gain in rate for which a doubled window stays doubled.
  static constexpr double kGain = 1.15;
  /// Measured rounds after which a larger window is tried again.
  static constexpr unsigned kRoundsUntilTrial = 32;

  /// Returns the limit for requests in flight.
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Notes that `waiting` more requests wait. The first window doubles at once if `waiting` reaches
  /// kLeast: a reader with a full queue wants throughput more than the first bytes.
  void on_waiting(std::size_t waiting) {
    if (is_first_ && waiting >= kLeast) size_ = 2 * kLeast;
    if (waiting >= kLeast) is_first_ = false;
  }

  /// Notes that a request ended. `is_full`: size() requests were in flight. A round counts only if
  /// every request was sent into a full window.
  void on_end(std::uint64_t bytes, bool is_full, Clock::time_point now) {
    if (!is_full) {
      is_measuring_ = false;
      return;
    }
    if (!is_measuring_) {
      is_measuring_ = true;
      began_ = now;
      ended_ = 0;
      bytes_ = 0;
      return;
    }
    bytes_ += bytes;
    if (++ended_ < 2 * size_) return;
    is_measuring_ = false;
    const std::chrono::duration<double> took = now - began_;
    judge(static_cast<double>(bytes_) / std::max(took.count(), 1e-6));
  }

 private:
  void judge(double rate) {
    is_first_ = false;
    if (is_trial_ && rate < kGain * rate_before_) {  // The trial gained nothing.
      is_trial_ = false;
      size_ = std::max(size_ / 2, kLeast);
      rounds_ = 0;
      return;
    }
    const bool tries = is_trial_ || rate_before_ == 0 || ++rounds_ >= kRoundsUntilTrial;
    is_trial_ = tries && size_ < kMost;
    rate_before_ = rate;
    if (is_trial_) size_ = std::min(2 * size_, kMost);
  }

  std::size_t size_ = kLeast;
  bool is_first_ = true;
  bool is_trial_ = false;
  double rate_before_ = 0;  // Bytes per second before the trial.
  unsigned rounds_ = 0;     // Rounds since the last trial.

  bool is_measuring_ = false;
  Clock::time_point began_{};
  std::size_t ended_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace varve::remote
