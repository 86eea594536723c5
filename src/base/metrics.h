// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms, and the registry that samples all metrics.
//
// A room declares its metrics in one structure, each in one line with name and help
// (`ingest/ingest_metrics.h`, for example). The constructor of the structure registers the metrics,
// and the room counts through the structure's references. docs/METRICS.md lists all metrics.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "varve/metrics.h"

namespace varve::base {

// Each metric has a separate cache line, so that threads with different metrics do not delay each
// other.
inline constexpr std::size_t kMetricAlignment = 64;

/// A number that only grows. Thread-safe; orders no other memory.
class alignas(kMetricAlignment) Counter {
 public:
  void add(std::uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  /// Adds a duration, to a counter whose unit is seconds.
  void add(std::chrono::nanoseconds duration) {
    add(static_cast<std::uint64_t>(std::max(duration.count(), std::int64_t{0})));
  }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A present number. Thread-safe; orders no other memory.
class alignas(kMetricAlignment) Gauge {
 public:
  /// Returns the new number.
  std::uint64_t add(std::uint64_t count = 1) {
    return value_.fetch_add(count, std::memory_order_relaxed) + count;
  }
  /// The caller must have added at least `count` before.
  void remove(std::uint64_t count = 1) { value_.fetch_sub(count, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A distribution of durations over the buckets of varve/metrics.h. Thread-safe; orders no other
/// memory.
class alignas(kMetricAlignment) Histogram {
 public:
  void record(std::chrono::nanoseconds duration);
  /// Returns the number of durations in each bucket, not counting the buckets before.
  [[nodiscard]] std::array<std::uint64_t, kMetricBounds + 1> counts() const;
  /// Returns the sum of all durations, in nanoseconds.
  [[nodiscard]] std::uint64_t sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kMetricBounds + 1> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

/// The registry of one repository's metrics. Thread-safe. The bounds below keep all samples within
/// one message of the control socket.
class Metrics {
 public:
  static constexpr std::size_t kMetricsMax = 512;
  static constexpr std::size_t kNameBytesMax = 64;
  static constexpr std::size_t kHelpBytesMax = 120;
  static constexpr std::size_t kLabelsMax = 2;
  /// Limit for a label's name, and for its value.
  static constexpr std::size_t kLabelBytesMax = 32;

  using Labels = std::vector<MetricLabel>;

  Metrics() = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Registers a metric. The name says the unit: a counter ends in _total, a gauge of bytes in
  /// _bytes, a histogram in _seconds. Each metric must be registered once, and all metrics of a
  /// family with the same kind and help.
  /// Lifetime: the reference is valid until the registry is destroyed.
  [[nodiscard]] Counter& counter(std::string_view name, std::string_view help, Labels labels = {});
  [[nodiscard]] Gauge& gauge(std::string_view name, std::string_view help, Labels labels = {});
  [[nodiscard]] Histogram& histogram(std::string_view name, std::string_view help,
                                     Labels labels = {});

  /// Returns the present values, ascending by name; in a family, by the order of registration.
  /// Values counted meanwhile may or may not be included.
  [[nodiscard]] std::vector<MetricSample> sample() const;

 private:
  struct Family {
    std::string help;
    MetricKind kind{};
    std::vector<std::pair<Labels, std::size_t>> members;  // Labels and index in the deque.
  };
  void add(std::string_view name, std::string_view help, MetricKind kind, Labels labels,
           std::size_t index);

  mutable std::mutex mutex_;  // Innermost.
  std::map<std::string, Family, std::less<>> families_;
  std::size_t size_ = 0;
  std::deque<Counter> counters_;
  std::deque<Gauge> gauges_;
  std::deque<Histogram> histograms_;
};

/// Returns whether the sample follows the rules of the registry: name, help, labels and buckets. A
/// sample from another process may break the rules.
[[nodiscard]] bool is_well_formed(const MetricSample& sample);

}  // namespace varve::base
