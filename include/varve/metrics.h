// SPDX-License-Identifier: Apache-2.0
// The present values of a repository's metrics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace varve {

enum class MetricKind : std::uint8_t {
  kCounter,    ///< Only grows, from 0 at the opening of the repository.
  kGauge,      ///< A present number.
  kHistogram,  ///< A distribution of durations.
};

enum class MetricUnit : std::uint8_t {
  kNone,     ///< A number of things.
  kBytes,    ///< A number of bytes.
  kSeconds,  ///< A duration. Its values are in nanoseconds here.
};

/// Number of bounded buckets of a histogram. One more bucket has no bound.
inline constexpr std::size_t kMetricBounds = 24;

/// Returns the largest duration in a bucket, in nanoseconds: 1 µs, 2 µs, 4 µs … 8.4 s.
[[nodiscard]] constexpr std::uint64_t metric_bound(std::size_t bucket) {
  return std::uint64_t{1000} << bucket;
}

/// A name and a value that tell metrics of one family apart.
struct MetricLabel {
  std::string name;
  std::string value;
  bool operator==(const MetricLabel&) const = default;
};

/// A metric at one moment. Name, kind, unit and help are equal for all metrics of a family.
struct MetricSample {
  std::string name;  ///< Name of the family, by the rules of Prometheus.
  std::string help;  ///< One sentence.
  MetricKind kind = MetricKind::kCounter;
  MetricUnit unit = MetricUnit::kNone;
  std::vector<MetricLabel> labels{};
  /// Value of a counter or a gauge; the sum of all durations of a histogram.
  std::uint64_t value = 0;
  /// Only for a histogram, kMetricBounds + 1 numbers: how many durations are at most
  /// metric_bound(i). The last number counts all.
  std::vector<std::uint64_t> buckets{};
  bool operator==(const MetricSample&) const = default;
};

}  // namespace varve
