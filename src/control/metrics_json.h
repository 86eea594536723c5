// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "control/json.h"
#include "varve/metrics.h"

namespace varve::control {

[[nodiscard]] Json metrics_to_json(const std::vector<MetricSample>& samples);
/// Returns nullopt unless `list` has the samples of a registry: within the registry's bounds,
/// well-formed, in the registry's order, and each once.
[[nodiscard]] std::optional<std::vector<MetricSample>> metrics_from_json(const Json& list);

/// Returns "counter", "gauge" or "histogram".
[[nodiscard]] const char* metric_kind_name(MetricKind kind);

}  // namespace varve::control
