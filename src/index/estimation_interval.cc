// SPDX-License-Identifier: Apache-2.0
#include "index/estimation_interval.h"

#include <algorithm>

namespace varve::index {

namespace {

// Fractions of an interval: an event ends the interval after a quarter; the share of hits is
// evaluated every eighth.
constexpr std::uint64_t kEventParts = 4;
constexpr std::uint64_t kRatioParts = 8;
constexpr double kRatioDrop = 0.7;
constexpr double kRatioWeight = 0.125;
constexpr double kIntervalInitial = 0.5;
constexpr double kIntervalMin = 0.1;
constexpr double kIntervalMax = 0.9;
constexpr std::uint64_t kArrivalsMin = 16;

std::uint64_t interval_for(std::size_t entries, double factor) {
  return std::max<std::uint64_t>(
      kArrivalsMin, static_cast<std::uint64_t>(static_cast<double>(entries) *
                                               std::clamp(factor, kIntervalMin, kIntervalMax)));
}

}  // namespace

EstimationInterval::EstimationInterval(std::size_t entries)
    : entries_(entries), length_(interval_for(entries, kIntervalInitial)) {}

void EstimationInterval::arrive(bool is_hit) {
  ++arrivals_;
  ++part_arrivals_;
  if (is_hit) ++part_hits_;
  if (part_arrivals_ * kRatioParts >= length_) note_ratio();
}

void EstimationInterval::note_ratio() {
  const double ratio = static_cast<double>(part_hits_) / static_cast<double>(part_arrivals_);
  part_arrivals_ = part_hits_ = 0;
  if (has_ratio_ && ratio < kRatioDrop * mean_ratio_) has_event_ = true;
  mean_ratio_ = has_ratio_ ? mean_ratio_ + kRatioWeight * (ratio - mean_ratio_) : ratio;
  has_ratio_ = true;
}

bool EstimationInterval::has_ended() const {
  return arrivals_ >= length_ || (has_event_ && arrivals_ * kEventParts >= length_);
}

void EstimationInterval::set_next_length() {
  if (has_ratio_) length_ = interval_for(entries_, 1 - mean_ratio_);
}

void EstimationInterval::begin() {
  arrivals_ = 0;
  has_event_ = false;
}

}  // namespace varve::index
