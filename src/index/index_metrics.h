// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::index {

/// The metrics of all loaded fingerprint indexes of a repository.
struct IndexMetrics {
  explicit IndexMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;
  base::Counter& lookups =
      metrics.counter("varve_index_lookups_total", "Fingerprints that were looked up.");
  base::Counter& hits = metrics.counter("varve_index_hits_total", "Fingerprints that were found.");
  base::Gauge& entries =
      metrics.gauge("varve_index_entries", "Entries of the indexes of open versions.");
};

}  // namespace varve::index
