// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <bit>

#include "base/assert.h"

namespace varve::base {
namespace {

MetricUnit unit_of(std::string_view name) {
  if (name.ends_with("_total")) name.remove_suffix(std::string_view("_total").size());
  if (name.ends_with("_bytes")) return MetricUnit::kBytes;
  return name.ends_with("_seconds") ? MetricUnit::kSeconds : MetricUnit::kNone;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

/// Returns whether a name is valid. Refuses names that the text format of Prometheus gives to parts
/// of a histogram.
bool is_metric_name(std::string_view name) {
  return is_word(name) && name.starts_with("varve_") && name.size() <= Metrics::kNameBytesMax &&
         !name.ends_with("_bucket") && !name.ends_with("_sum") && !name.ends_with("_count");
}

bool is_printable(std::string_view text, std::size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool has_right_suffix(std::string_view name, MetricKind kind) {
  if (name.ends_with("_total") != (kind == MetricKind::kCounter)) return false;
  return kind != MetricKind::kHistogram || name.ends_with("_seconds");
}

bool are_well_formed(const Metrics::Labels& labels) {
  return labels.size() <= Metrics::kLabelsMax &&
         std::ranges::all_of(labels, [&](const MetricLabel& label) {
           // The text format of Prometheus adds both labels.
           const bool is_free = label.name != "le" && label.name != "repository";
           return is_free && is_word(label.name) && label.name.size() <= Metrics::kLabelBytesMax &&
                  is_printable(label.value, Metrics::kLabelBytesMax) &&
                  std::ranges::count(labels, label.name, &MetricLabel::name) == 1;
         });
}

}  // namespace

void Histogram::record(std::chrono::nanoseconds duration) {
  const auto passed = static_cast<std::uint64_t>(std::max(duration.count(), std::int64_t{0}));
  // The first bucket with passed <= bound: bounds are metric_bound(0) shifted to the left.
  const std::uint64_t units = passed == 0 ? 0 : (passed - 1) / metric_bound(0);
  const auto bucket =
      std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(units)), kMetricBounds);
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(passed, std::memory_order_relaxed);
}

std::array<std::uint64_t, kMetricBounds + 1> Histogram::counts() const {
  std::array<std::uint64_t, kMetricBounds + 1> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = counts_[i].load(std::memory_order_relaxed);
  }
  return counts;
}

void Metrics::add(std::string_view name, std::string_view help, MetricKind kind, Labels labels,
                  std::size_t index) {
  VARVE_ASSERT(size_ < kMetricsMax);
  VARVE_ASSERT(is_metric_name(name));
  VARVE_ASSERT(has_right_suffix(name, kind));
  VARVE_ASSERT(is_printable(help, kHelpBytesMax));
  VARVE_ASSERT(are_well_formed(labels));
  const auto [place, is_new] = families_.try_emplace(std::string(name));
  Family& family = place->second;
  if (is_new) {
    family.help = help;
    family.kind = kind;
  }
  VARVE_ASSERT(family.kind == kind && family.help == help);
  VARVE_ASSERT(
      std::ranges::find(family.members, labels, &decltype(family.members)::value_type::first) ==
      family.members.end());
  family.members.emplace_back(std::move(labels), index);
  ++size_;
}

Counter& Metrics::counter(std::string_view name, std::string_view help, Labels labels) {
  const std::lock_guard lock(mutex_);
  add(name, help, MetricKind::kCounter, std::move(labels), counters_.size());
  return counters_.emplace_back();
}

Gauge& Metrics::gauge(std::string_view name, std::string_view help, Labels labels) {
  const std::lock_guard lock(mutex_);
  add(name, help, MetricKind::kGauge, std::move(labels), gauges_.size());
  return gauges_.emplace_back();
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help, Labels labels) {
  const std::lock_guard lock(mutex_);
  add(name, help, MetricKind::kHistogram, std::move(labels), histograms_.size());
  return histograms_.emplace_back();
}

std::vector<MetricSample> Metrics::sample() const {
  std::vector<MetricSample> samples;
  const std::lock_guard lock(mutex_);
  samples.reserve(size_);
  for (const auto& [name, family] : families_) {
    for (const auto& [labels, index] : family.members) {
      MetricSample& sample = samples.emplace_back();
      sample.name = name;
      sample.help = family.help;
      sample.kind = family.kind;
      sample.unit = unit_of(name);
      sample.labels = labels;
      if (family.kind == MetricKind::kCounter) {
        sample.value = counters_[index].value();
      } else if (family.kind == MetricKind::kGauge) {
        sample.value = gauges_[index].value();
      } else {
        sample.value = histograms_[index].sum();
        std::uint64_t count = 0;
        for (const std::uint64_t in_bucket : histograms_[index].counts()) {
          sample.buckets.push_back(count += in_bucket);
        }
      }
    }
  }
  return samples;
}

bool is_well_formed(const MetricSample& sample) {
  const std::size_t buckets = sample.kind == MetricKind::kHistogram ? kMetricBounds + 1 : 0;
  return is_metric_name(sample.name) && has_right_suffix(sample.name, sample.kind) &&
         sample.unit == unit_of(sample.name) && is_printable(sample.help, Metrics::kHelpBytesMax) &&
         are_well_formed(sample.labels) && sample.buckets.size() == buckets &&
         std::ranges::is_sorted(sample.buckets);
}

}  // namespace varve::base
