// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::layout {

/// The metrics of all layouts and arrangers of a repository.
struct LayoutMetrics {
  explicit LayoutMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;

  // Containers with chunks of open versions.
  base::Counter& containers =
      metrics.counter("varve_layout_containers_total", "Containers that hold new chunks.");
  base::Counter& container_bytes = metrics.counter("varve_layout_container_bytes_total",
                                                   "Stored bytes of containers with new chunks.");

  // Arranging.
  base::Counter& runs = metrics.counter("varve_arrange_runs_total", "Runs that arranging began.");
  base::Counter& read_bytes =
      metrics.counter("varve_arrange_read_bytes_total", "Stored bytes that arranging read.");
  base::Counter& written_bytes = metrics.counter(
      "varve_arrange_written_bytes_total", "Stored bytes of the chunks that arranging moved.");
  base::Counter& coalesced_bytes =
      metrics.counter("varve_arrange_coalesced_bytes_total",
                      "Stored bytes of the volumes that arranging made of smaller ones.");
  base::Counter& delta_bytes =
      metrics.counter("varve_arrange_delta_bytes_total",
                      "Stored bytes of the frames that arranging compressed with a prefix.");
  base::Counter& delta_plain_bytes = metrics.counter(
      "varve_arrange_delta_plain_bytes_total",
      "Stored bytes of the same frames without a prefix, where not tried, by an estimate.");
  base::Counter& freed_bytes = metrics.counter("varve_arrange_freed_bytes_total",
                                               "Stored bytes of the files that arranging removed.");
  base::Counter& aliases = metrics.counter("varve_post_pass_aliases_total",
                                           "Duplicates in the pool that became aliases.");
  base::Counter& aliased_bytes = metrics.counter(
      "varve_post_pass_aliased_bytes_total", "Raw bytes of the duplicates that became aliases.");
  base::Counter& compared_bytes =
      metrics.counter("varve_post_pass_searched_bytes_total",
                      "Bytes that the search for duplicates in the pool read and wrote.");
  base::Counter& busy_seconds = metrics.counter("varve_arrange_busy_seconds_total",
                                                "Time that arranging worked, without its pauses.");
};

}  // namespace varve::layout
