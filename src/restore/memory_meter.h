// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include "base/metrics.h"

namespace varve::restore {

/// Counts the bytes held by the read path in areas, caches and buffers. Thread-safe.
class MemoryMeter {
 public:
  MemoryMeter() : held_(own_) {}
  /// Counts with a gauge.
  /// Lifetime: the gauge must outlive the meter.
  explicit MemoryMeter(base::Gauge& held) : held_(held) {}
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  void add(std::size_t bytes) {
    const std::size_t now = held_.add(bytes);
    std::size_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void remove(std::size_t bytes) { held_.remove(bytes); }

  [[nodiscard]] std::size_t held() const { return held_.value(); }
  [[nodiscard]] std::size_t peak() const { return peak_.load(); }

 private:
  base::Gauge own_;
  base::Gauge& held_;
  std::atomic<std::size_t> peak_ = 0;
};

}  // namespace varve::restore
