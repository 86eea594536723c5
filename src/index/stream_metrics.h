// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::index {

/// The metrics of the stream index of a repository's pool. All are 0 with another index.
struct StreamMetrics {
  explicit StreamMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;
  base::Counter& lookups = metrics.counter("varve_pool_stream_lookups_total",
                                           "Fingerprints that the stream index looked up.");
  base::Counter& hits =
      metrics.counter("varve_pool_stream_hits_total", "Chunks that the stream index found.");
  base::Counter& short_run_chunks =
      metrics.counter("varve_pool_stream_short_run_chunks_total",
                      "Found chunks that are stored again because their run is short.");
  base::Counter& evictions =
      metrics.counter("varve_pool_stream_evictions_total",
                      "Entries that the stream index dropped to have room for others.");
  base::Histogram& estimate = metrics.histogram("varve_pool_stream_estimate_seconds",
                                                "Time to estimate the locality of one stream.");
};

}  // namespace varve::index
