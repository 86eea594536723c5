// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_output.h"

#include <fmt/core.h>

#include <cstdint>

#include "cli/output.h"
#include "cli/stats_export.h"
#include "control/metrics_json.h"

namespace varve::cli {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / static_cast<double>(kSecond);
}

/// Returns the exact number of seconds, for example "0.000004".
std::string exact_seconds(std::uint64_t nanoseconds) {
  std::string text = fmt::format("{}.{:09}", nanoseconds / kSecond, nanoseconds % kSecond);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Returns the duration in a fitting unit, for example "16 us".
std::string latency_text(std::uint64_t nanoseconds) {
  if (nanoseconds < 1'000'000) return fmt::format("{} us", (nanoseconds + 500) / 1000);
  if (nanoseconds < kSecond) return fmt::format("{:.1f} ms", seconds(nanoseconds) * 1e3);
  return fmt::format("{:.1f} s", seconds(nanoseconds));
}

std::string name_with_labels(const MetricSample& sample) {
  std::string text = sample.name;
  for (const MetricLabel& label : sample.labels) {
    text += fmt::format(" {}={}", label.name, label.value);
  }
  return text;
}

std::string value_text(const MetricSample& sample, bool exact) {
  if (sample.unit == MetricUnit::kBytes) return size_text(sample.value, exact);
  if (sample.unit == MetricUnit::kSeconds) return latency_text(sample.value);
  return std::to_string(sample.value);
}

/// Returns the bound of the bucket in which `percent` of the durations are reached. The histogram
/// must not be empty.
std::string percentile_text(const MetricSample& histogram, std::uint64_t percent) {
  const std::uint64_t count = histogram.buckets.back();
  for (std::size_t i = 0; i < kMetricBounds; ++i) {
    const auto reached = static_cast<double>(histogram.buckets[i]) * 100;
    if (reached >= static_cast<double>(count) * static_cast<double>(percent)) {
      return latency_text(metric_bound(i));
    }
  }
  return "> " + latency_text(metric_bound(kMetricBounds - 1));
}

/// Returns the labels with a comma after each.
std::string label_list(std::string_view repository, const MetricSample& sample) {
  std::string text = fmt::format("repository=\"{}\",", prometheus_label(repository));
  for (const MetricLabel& label : sample.labels) {
    text += fmt::format("{}=\"{}\",", label.name, prometheus_label(label.value));
  }
  return text;
}

std::string without_last(std::string text) {
  text.pop_back();
  return text;
}

void add_histogram(std::string& text, const MetricSample& sample, const std::string& labels) {
  for (std::size_t i = 0; i <= kMetricBounds; ++i) {
    text +=
        fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", sample.name, labels,
                    i < kMetricBounds ? exact_seconds(metric_bound(i)) : "+Inf", sample.buckets[i]);
  }
  const std::string plain = without_last(labels);
  text += fmt::format("{}_sum{{{}}} {}\n", sample.name, plain, exact_seconds(sample.value));
  text += fmt::format("{}_count{{{}}} {}\n", sample.name, plain, sample.buckets.back());
}

}  // namespace

std::string metrics_table(const std::vector<MetricSample>& samples, bool exact) {
  std::vector<std::vector<std::string>> numbers{{"METRIC", "VALUE", "MEANING"}};
  std::vector<std::vector<std::string>> durations{{"DURATION", "COUNT", "MEAN", "50 %", "99 %"}};
  for (const MetricSample& sample : samples) {
    if (sample.kind == MetricKind::kHistogram) {
      const std::uint64_t count = sample.buckets.back();
      if (count == 0) continue;
      durations.push_back({name_with_labels(sample), std::to_string(count),
                           latency_text(sample.value / count), percentile_text(sample, 50),
                           percentile_text(sample, 99)});
    } else if (sample.value != 0 || sample.labels.empty()) {
      numbers.push_back({name_with_labels(sample), value_text(sample, exact), sample.help});
    }
  }
  std::string text = table(numbers, "lrl");
  if (durations.size() > 1) text += "\n" + table(durations, "lrrrr");
  return text;
}

Json metric_json(const MetricSample& sample) {
  Json object = {{"name", sample.name},
                 {"kind", control::metric_kind_name(sample.kind)},
                 {"help", sample.help},
                 {"labels", Json::object()}};
  for (const MetricLabel& label : sample.labels) object["labels"][label.name] = label.value;
  const bool is_time = sample.unit == MetricUnit::kSeconds;
  if (sample.kind != MetricKind::kHistogram) {
    object["value"] = is_time ? Json(seconds(sample.value)) : Json(sample.value);
    return object;
  }
  object["count"] = sample.buckets.back();
  object["sum"] = seconds(sample.value);
  Json buckets = Json::array();
  for (std::size_t i = 0; i < kMetricBounds; ++i) {
    buckets.push_back({{"le", seconds(metric_bound(i))}, {"count", sample.buckets[i]}});
  }
  object["buckets"] = std::move(buckets);
  return object;
}

std::string prometheus_metrics(std::string_view repository,
                               const std::vector<MetricSample>& samples) {
  std::string text;
  std::string_view family;
  for (const MetricSample& sample : samples) {
    if (sample.name != family) {
      add_prometheus_header(text, sample.name, sample.help, control::metric_kind_name(sample.kind));
    }
    family = sample.name;
    const std::string labels = label_list(repository, sample);
    if (sample.kind == MetricKind::kHistogram) {
      add_histogram(text, sample, labels);
    } else {
      text += fmt::format("{}{{{}}} {}\n", sample.name, without_last(labels),
                          sample.unit == MetricUnit::kSeconds ? exact_seconds(sample.value)
                                                              : std::to_string(sample.value));
    }
  }
  return text;
}

}  // namespace varve::cli
