// SPDX-License-Identifier: Apache-2.0
#include "control/metrics_json.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/metrics.h"

namespace varve::control {
namespace {

template <typename Value>
using Names = std::array<std::pair<Value, const char*>, 3>;

constexpr Names<MetricKind> kKinds = {{
    {MetricKind::kCounter, "counter"},
    {MetricKind::kGauge, "gauge"},
    {MetricKind::kHistogram, "histogram"},
}};

constexpr Names<MetricUnit> kUnits = {{
    {MetricUnit::kNone, "none"},
    {MetricUnit::kBytes, "bytes"},
    {MetricUnit::kSeconds, "seconds"},
}};

template <typename Value>
const char* name_of(const Names<Value>& names, Value value) {
  const auto place = std::ranges::find(names, value, &Names<Value>::value_type::first);
  return place == names.end() ? "?" : place->second;
}

template <typename Value>
std::optional<Value> value_of(const Names<Value>& names, const std::string& name) {
  for (const auto& [value, known] : names) {
    if (name == known) return value;
  }
  return std::nullopt;
}

Json to_json(const MetricSample& sample) {
  Json object = {{"name", sample.name},
                 {"help", sample.help},
                 {"kind", name_of(kKinds, sample.kind)},
                 {"unit", name_of(kUnits, sample.unit)},
                 {"value", sample.value}};
  if (!sample.labels.empty()) {
    Json labels = Json::array();
    for (const MetricLabel& label : sample.labels) {
      labels.push_back({{"name", label.name}, {"value", label.value}});
    }
    object["labels"] = std::move(labels);
  }
  if (!sample.buckets.empty()) {
    Json buckets = Json::array();
    for (const std::uint64_t count : sample.buckets) buckets.push_back(count);
    object["buckets"] = std::move(buckets);
  }
  return object;
}

/// Returns false for an invalid label.
bool read_labels(const Json* list, MetricSample& sample) {
  if (list == nullptr) return true;
  if (list->elements() == nullptr) return false;
  for (const Json& object : *list->elements()) {
    Fields fields(object);
    MetricLabel label{fields.text("name"), fields.text("value")};
    if (!fields.ok()) return false;
    sample.labels.push_back(std::move(label));
  }
  return true;
}

bool read_buckets(const Json* list, MetricSample& sample) {
  if (list == nullptr) return true;
  if (list->elements() == nullptr) return false;
  for (const Json& number : *list->elements()) {
    const auto count = number.count();
    if (!count) return false;
    sample.buckets.push_back(*count);
  }
  return true;
}

std::optional<MetricSample> sample_from(const Json& object) {
  Fields fields(object);
  MetricSample sample;
  sample.name = fields.text("name");
  sample.help = fields.text("help");
  const auto kind = value_of(kKinds, fields.text("kind"));
  const auto unit = value_of(kUnits, fields.text("unit"));
  sample.value = fields.count("value");
  if (!fields.ok() || !kind || !unit) return std::nullopt;
  sample.kind = *kind;
  sample.unit = *unit;
  if (!read_labels(object.find("labels"), sample)) return std::nullopt;
  if (!read_buckets(object.find("buckets"), sample)) return std::nullopt;
  if (!base::is_well_formed(sample)) return std::nullopt;
  return sample;
}

}  // namespace

Json JsonOf<std::vector<MetricSample>>::write(const std::vector<MetricSample>& samples) {
  Json list = Json::array();
  for (const MetricSample& sample : samples) list.push_back(to_json(sample));
  return list;
}

std::optional<std::vector<MetricSample>> JsonOf<std::vector<MetricSample>>::read(const Json& list) {
  if (list.elements() == nullptr || list.elements()->size() > base::Metrics::kMetricsMax) {
    return std::nullopt;
  }
  std::vector<MetricSample> samples;
  std::size_t family = 0;  // Index of the family's first sample.
  for (const Json& object : *list.elements()) {
    auto sample = sample_from(object);
    if (!sample) return std::nullopt;
    if (!samples.empty() && samples.back().name != sample->name) {
      if (sample->name < samples.back().name) return std::nullopt;
      family = samples.size();
    }
    for (std::size_t i = family; i < samples.size(); ++i) {
      const MetricSample& other = samples[i];
      if (other.kind != sample->kind || other.help != sample->help ||
          other.labels == sample->labels) {
        return std::nullopt;
      }
    }
    samples.push_back(*std::move(sample));
  }
  return samples;
}

const char* metric_kind_name(MetricKind kind) { return name_of(kKinds, kind); }

}  // namespace varve::control
