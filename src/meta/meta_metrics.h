// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::meta {

/// The metrics of a repository's catalog.
struct MetaMetrics {
  explicit MetaMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;
  base::Counter& records_read = metrics.counter("varve_catalog_records_read_total",
                                                "Records that were read from the catalog.");
};

}  // namespace varve::meta
