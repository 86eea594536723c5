// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::restore {

/// The metrics of the read path of a repository.
struct ReadMetrics {
  explicit ReadMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;
  base::Counter& requests =
      metrics.counter("varve_restore_requests_total", "Requests for stored data.");
  base::Counter& read_bytes =
      metrics.counter("varve_restore_read_bytes_total", "Stored bytes that were read.");
  base::Counter& decoded_bytes =
      metrics.counter("varve_restore_decoded_bytes_total",
                      "Raw bytes of the frames that were decoded for readers, also of prefixes.");
  base::Counter& delivered_bytes =
      metrics.counter("varve_restore_delivered_bytes_total", "File data given to readers.");
  base::Counter& sessions =
      metrics.counter("varve_restore_sessions_total", "Look-ahead sessions that were started.");
  base::Counter& areas =
      metrics.counter("varve_restore_areas_total", "Areas that sessions assembled.");
  base::Counter& chunk_cache_hits =
      metrics.counter("varve_restore_chunk_cache_hits_total",
                      "Chunks of an area that the cache of the session had.");
  base::Counter& chunk_cache_misses =
      metrics.counter("varve_restore_chunk_cache_misses_total",
                      "Chunks of an area that the cache of the session did not have.");
  base::Counter& frame_cache_hits = metrics.counter("varve_restore_frame_cache_hits_total",
                                                    "Frames of random reads that were cached.");
  base::Counter& frame_cache_misses = metrics.counter(
      "varve_restore_frame_cache_misses_total", "Frames of random reads that were not cached.");
  base::Gauge& memory_bytes = metrics.gauge("varve_restore_memory_bytes",
                                            "Memory of areas, caches and buffers for reading.");
};

}  // namespace varve::restore
