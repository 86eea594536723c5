// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace varve::restore {

/// Counts the bytes that the read path holds in areas, caches and buffers. Thread-safe.
class MemoryMeter {
 public:
  void add(std::size_t bytes) {
    const std::size_t now = held_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void remove(std::size_t bytes) { held_.fetch_sub(bytes); }

  [[nodiscard]] std::size_t held() const { return held_.load(); }
  [[nodiscard]] std::size_t peak() const { return peak_.load(); }

 private:
  std::atomic<std::size_t> held_ = 0;
  std::atomic<std::size_t> peak_ = 0;
};

}  // namespace varve::restore
