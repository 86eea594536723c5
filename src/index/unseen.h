// SPDX-License-Identifier: Apache-2.0
// Estimates the number of different fingerprints of a stream from a sample (Valiant and Valiant,
// NIPS'13; Wu et al., TPDS'18 §5.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace varve::index {

/// Number of values that appear exactly `times` times.
struct Frequency {
  std::uint64_t times = 0;
  std::uint64_t values = 0;
  bool operator==(const Frequency&) const = default;
};

/// Returns the frequencies of the values, ascending by `times`, without frequencies of no value.
/// Sorts the values.
[[nodiscard]] std::vector<Frequency> frequencies_of(std::vector<std::uint64_t>& values);

/// The estimate for a stream.
struct UnseenEstimate {
  double distinct = 0;     ///< Number of different values.
  bool is_solved = false;  ///< False if the linear programme failed: the estimate is Chao's.
};

/// Estimates the number of different values among `arrivals` from a uniform sample without
/// replacement. A sample with all arrivals gives the exact number.
///
/// Finds the histogram H of the stream that explains the sample best: minimises
/// sum |h_i - (T H)_i| / sqrt(h_i + 1), where T thins frequencies binomially, subject to
/// sum j H_j = arrivals (the paper prints sum H_j, which would leave no duplicates). Among almost
/// equally good histograms, takes the middle of the fewest and the most values. The fewest alone,
/// as published, would find 2 to 6 % duplicates in a small sample without any. Values with more
/// than 20 appearances in the sample are counted directly.
[[nodiscard]] UnseenEstimate estimate_distinct(std::span<const Frequency> sample,
                                               std::uint64_t arrivals);

/// Returns the duplicates that estimate_distinct() reports for a stream of `arrivals` different
/// values, from a sample of `sampled` values: 1 to 3 % of some thousand arrivals, 0.3 % of 50,000.
/// Returns 0 if the linear programme fails.
[[nodiscard]] double invented_duplicates(std::uint64_t sampled, std::uint64_t arrivals);

/// Returns the lower bound of Chao for the number of different values.
[[nodiscard]] double chao_estimate(std::span<const Frequency> sample, std::uint64_t arrivals);

}  // namespace varve::index
