// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"

namespace varve::ingest {

/// The metrics of all ingest pipelines of a repository.
struct IngestMetrics {
  explicit IngestMetrics(base::Metrics& registry) : metrics(registry) {}

  base::Metrics& metrics;
  base::Counter& received_bytes = metrics.counter(
      "varve_ingest_received_bytes_total", "File data that was received to be cut, without holes.");
  base::Counter& cut_chunks =
      metrics.counter("varve_ingest_cut_chunks_total", "Chunks that were cut.");
  base::Counter& new_chunks =
      metrics.counter("varve_ingest_new_chunks_total", "Chunks that were stored as new.");
  base::Counter& duplicate_chunks = metrics.counter(
      "varve_ingest_duplicate_chunks_total", "Chunks that became references to stored ones.");
  base::Counter& again_chunks = metrics.counter("varve_ingest_again_chunks_total",
                                                "Duplicates that the policy had stored again.");
  base::Counter& stored_bytes = metrics.counter("varve_ingest_stored_bytes_total",
                                                "Raw bytes of the chunks stored as new or again.");
  base::Counter& checkpoints =
      metrics.counter("varve_ingest_checkpoints_total", "Checkpoints of open versions.");
};

}  // namespace varve::ingest
