// SPDX-License-Identifier: Apache-2.0
#include "index/stream_estimates.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace varve::index {

namespace {

constexpr std::array kWeights{0.2, 0.4, 0.6, 0.8};

// Smooths the values, and returns the forecast and the sum of the squared errors on the way.
std::pair<double, double> smooth(const std::deque<double>& values, double level_weight,
                                 double trend_weight) {
  double level = values.front();
  double trend = 0;
  double errors = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double error = values[i] - (level + trend);
    errors += error * error;
    const double before = level;
    level = level_weight * values[i] + (1 - level_weight) * (level + trend);
    trend = trend_weight * (level - before) + (1 - trend_weight) * trend;
  }
  return {level + trend, errors};
}

}  // namespace

void Reservoir::offer(std::uint64_t value, SeededRandom& random) {
  ++arrivals_;
  if (sample_.size() < capacity_) {
    sample_.push_back(value);
  } else if (const auto place = random.below(arrivals_); place < capacity_) {
    sample_[place] = value;
  }
}

std::vector<std::uint64_t> Reservoir::take(std::size_t new_capacity) {
  capacity_ = new_capacity;
  arrivals_ = 0;
  return std::exchange(sample_, {});
}

void HoltForecast::add(double value) {
  values_.push_back(value);
  if (values_.size() > kValuesMax) values_.pop_front();
  double least = std::numeric_limits<double>::infinity();
  for (const double level_weight : kWeights) {
    for (const double trend_weight : kWeights) {
      const auto [forecast, errors] = smooth(values_, level_weight, trend_weight);
      if (errors >= least) continue;
      least = errors;
      next_ = std::max(forecast, 0.0);
    }
  }
}

std::uint64_t RunThreshold::Lengths::total() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

double RunThreshold::Lengths::mean() const {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += static_cast<double>(i + 1) * static_cast<double>(counts[i]);
  }
  return sum / static_cast<double>(std::max<std::uint64_t>(total(), 1));
}

void RunThreshold::note(Lengths& lengths, std::uint64_t run_length) {
  if (run_length != 0) ++lengths.counts[std::min<std::uint64_t>(run_length, kLengthMax) - 1];
}

void RunThreshold::update(std::uint64_t arrivals, std::uint64_t duplicates) {
  if (arrivals == 0) return;
  const double ratio = static_cast<double>(duplicates) / static_cast<double>(arrivals);
  const bool has_fallen = ratio < ratio_ / 2;
  ratio_ = ratio;
  if (has_fallen) {
    written_ = {};
    read_ = {};
  }
  const auto reads = static_cast<double>(read_.total());
  if (written_.total() == 0 && reads == 0) return;  // Nothing to judge by: keeps the threshold.
  const double share = reads / (reads + static_cast<double>(arrivals));
  const double mean = (1 - share) * written_.mean() + share * read_.mean();
  value_ = static_cast<std::uint32_t>(std::clamp(mean, 1.0, static_cast<double>(kLengthMax)));
}

}  // namespace varve::index
