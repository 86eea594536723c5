// SPDX-License-Identifier: Apache-2.0
// Shows the metrics of a daemon.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/json.h"
#include "varve/metrics.h"

namespace varve::cli {

/// Returns two tables: the numbers, and the durations. Leaves out operations that never happened.
/// `exact`: whether to print exact numbers of bytes.
[[nodiscard]] std::string metrics_table(const std::vector<MetricSample>& samples, bool exact);

/// Returns a metric as `varve stats --live --json` shows it. Durations are in seconds.
[[nodiscard]] control::Json metric_json(const MetricSample& sample);

/// Returns the metrics in the text format of Prometheus. `repository` is the value of a label.
[[nodiscard]] std::string prometheus_metrics(std::string_view repository,
                                             const std::vector<MetricSample>& samples);

}  // namespace varve::cli
