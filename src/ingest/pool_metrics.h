// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::ingest {

/// The metrics of the decisions about the pool, over all versions written by the process.
struct PoolMetrics {
  explicit PoolMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;
  base::Counter& kept_chunks = metrics.counter(
      "varve_pool_kept_chunks_total", "Duplicates that became references to chunks of the pool.");
  base::Counter& kept_bytes =
      metrics.counter("varve_pool_kept_bytes_total",
                      "Raw bytes of the duplicates that became references to chunks of the pool.");
  base::Counter& rewritten_chunks =
      metrics.counter("varve_pool_rewritten_chunks_total",
                      "Chunks of the pool that the rewriting policy had stored again.");
  base::Counter& rewritten_bytes =
      metrics.counter("varve_pool_rewritten_bytes_total",
                      "Raw bytes of the chunks that the rewriting policy had stored again.");
  base::Counter& promoted_chunks =
      metrics.counter("varve_pool_promoted_chunks_total",
                      "Chunks that were stored in the pool because another series has them.");
  base::Counter& promoted_bytes = metrics.counter(
      "varve_pool_promoted_bytes_total",
      "Raw bytes of the chunks that were stored in the pool because another series has them.");
  base::Counter& sparse_containers = metrics.counter(
      "varve_pool_sparse_containers_total", "Sparse containers that sealed versions inherited.");
};

}  // namespace varve::ingest
