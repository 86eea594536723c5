// SPDX-License-Identifier: Apache-2.0
// Decides when a get is so late that a second get is worth its price.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace varve::bucket {

/// The times of the last gets, by size. Not thread-safe.
/// Source: "The Tail at Scale", CACM 56(2), 2013: hedged requests.
class GetTimes {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr std::size_t kSamples = 32;
  static constexpr std::size_t kSamplesLeast = 16;
  static constexpr std::uint64_t kSecondsPerGet = 20;  ///< Gets per second get: 5 % of all gets.
  static constexpr int kFactor = 3;

  /// Counts a get that begins.
  void begin() { ++gets_; }
  /// Adds the time of a successful get.
  void add(std::size_t bytes, Duration took) {
    auto& size = sizes_.at(index(bytes));
    if (size.times.size() < kSamples) {
      size.times.push_back(took);
    } else {
      size.times[size.next++ % kSamples] = took;
    }
    auto sorted = size.times;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    size.median = *middle;
  }
  /// Returns the time after which a get of `bytes` bytes is late; nullopt with too few samples.
  [[nodiscard]] std::optional<Duration> late_after(std::size_t bytes) const {
    const auto& size = sizes_.at(index(bytes));
    if (size.times.size() < kSamplesLeast) return std::nullopt;
    return kFactor * size.median;
  }
  /// Returns whether another second get is within the limit, and counts the second get.
  [[nodiscard]] bool take_second() {
    if ((seconds_ + 1) * kSecondsPerGet > gets_) return false;
    ++seconds_;
    return true;
  }

 private:
  struct Size {
    std::vector<Duration> times{};
    std::size_t next = 0;
    Duration median{};
  };
  // Gets of up to 64 KiB, of up to 128 KiB and so on share a size.
  static std::size_t index(std::size_t bytes) {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes >> 16U)), 15);
  }

  std::array<Size, 16> sizes_{};
  std::uint64_t gets_ = 0;
  std::uint64_t seconds_ = 0;
};

}  // namespace varve::bucket
