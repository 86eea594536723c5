// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/metrics.h"
#include "index/index_metrics.h"
#include "index/stream_metrics.h"
#include "ingest/ingest_metrics.h"
#include "ingest/pool_metrics.h"
#include "layout/layout_metrics.h"
#include "series/label_metrics.h"

namespace varve::series {

/// The metrics shared by all series of a repository.
struct SeriesMetrics {
  explicit SeriesMetrics(base::Metrics& registry)
      : ingest(registry),
        index(registry),
        streams(registry),
        layout(registry),
        labels(registry),
        pool(registry) {}

  const ingest::IngestMetrics ingest;
  const index::IndexMetrics index;
  const index::StreamMetrics streams;
  const layout::LayoutMetrics layout;
  const LabelMetrics labels;
  const ingest::PoolMetrics pool;
};

}  // namespace varve::series
