// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "control/json_fields.h"
#include "varve/metrics.h"

namespace varve::control {

/// The samples of a registry.
template <>
struct JsonOf<std::vector<MetricSample>> {
  [[nodiscard]] static Json write(const std::vector<MetricSample>& samples);
  /// Returns nullopt unless `json` has the samples of a registry: within the registry's bounds,
  /// well-formed, in the registry's order, and each once.
  [[nodiscard]] static std::optional<std::vector<MetricSample>> read(const Json& json);
};

/// Returns "counter", "gauge" or "histogram".
[[nodiscard]] const char* metric_kind_name(MetricKind kind);

}  // namespace varve::control
