// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace varve::cli {

/// Distinguishes repeated signals from repeated requests to stop. timeout(1) and some shells signal
/// a process and then the process group, so one request may arrive as two signals. An impatient
/// user asks again later. Async-signal-safe.
class StopSignals {
 public:
  enum class Meaning : std::uint8_t {
    kStop,  ///< The first signal: complete or undo the work under way.
    kEcho,  ///< Another signal of the same request.
    kEnd,   ///< A later request: end at once.
  };
  /// Longest time from the first signal to an echo.
  static constexpr std::chrono::milliseconds kEchoMax{500};

  /// Returns the meaning of a signal that arrived at `now`.
  [[nodiscard]] Meaning note(std::chrono::steady_clock::time_point now) {
    const std::int64_t time = now.time_since_epoch().count();
    std::int64_t first = kNone;
    if (first_.compare_exchange_strong(first, time)) return Meaning::kStop;
    const std::chrono::steady_clock::duration since(time - first);
    return since < kEchoMax ? Meaning::kEcho : Meaning::kEnd;
  }
  /// Returns whether a signal has arrived.
  [[nodiscard]] bool any() const { return first_ != kNone; }

 private:
  static constexpr std::int64_t kNone = INT64_MIN;
  std::atomic<std::int64_t> first_ = kNone;
};

}  // namespace varve::cli
