// SPDX-License-Identifier: Apache-2.0
// The waits between the tries of a request.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace varve::bucket {

/// Random waits between zero and a limit that doubles with each try, so that clients failing at the
/// same time return at different times. Not thread-safe.
/// Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: full jitter.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds most, std::uint64_t seed)
      : first_(first), most_(most), random_(seed) {}

  /// Returns the wait after `tries` tries, at least 1.
  [[nodiscard]] std::chrono::milliseconds wait_after(unsigned tries) {
    auto limit = std::min(first_, most_);
    for (unsigned i = 1; i < tries && limit < most_; ++i) limit = std::min(2 * limit, most_);
    std::uniform_int_distribution<std::int64_t> wait(0, limit.count());
    return std::chrono::milliseconds(wait(random_));
  }

 private:
  const std::chrono::milliseconds first_;
  const std::chrono::milliseconds most_;
  std::mt19937_64 random_;
};

}  // namespace varve::bucket
