// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::series {

/// The metrics of the labels of all series of a repository.
struct LabelMetrics {
  explicit LabelMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;
  base::Counter& written_bytes =
      metrics.counter("varve_labels_written_bytes_total", "Bytes of labels that were written.");
  base::Counter& appends =
      metrics.counter("varve_labels_appends_total", "Changes that were appended to labels.");
  base::Counter& rewrites =
      metrics.counter("varve_labels_rewrites_total", "Labels that were written as a whole.");
};

}  // namespace varve::series
