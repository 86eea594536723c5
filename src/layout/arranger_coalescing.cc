// SPDX-License-Identifier: Apache-2.0
// Merges small volumes.
#include <utility>

#include "catalog/layout_records.h"
#include "layout/arranger.h"
#include "layout/coalescing.h"
#include "layout/file_chunks.h"
#include "layout/version_walk.h"

namespace varve::layout {

// Coalescing does not change the active set, so the caller need not compute a new view.
Result<void> Arranger::coalesce() {
  auto& layout = *parts_.layout;
  const auto& options = layout.options();
  const std::uint64_t before = done_.bytes_written;
  while (!stopped()) {
    MoveStep kind;
    base::IdRuns chunks;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(layout.catalog()));
      VARVE_TRY_ASSIGN(const auto versions, recent_versions(txn, options.series, settings_.window));
      VARVE_TRY_ASSIGN(auto segments, catalog::list_segments(txn, options.store));
      std::erase_if(segments,
                    [this](const auto& file) { return coalesced_.contains(file.segment); });
      const auto job = next_coalescing(segments, versions, settings_.window, parts_.coalescing);
      if (!job) break;
      if (parts_.evicted.find) {
        VARVE_TRY_ASSIGN(const bool may_work, may_read({job->volumes.begin(), job->volumes.end()}));
        if (!may_work) break;
      }
      VARVE_TRY_ASSIGN(const auto located, chunks_in_files(layout, txn, job->volumes));
      chunks = located.subtract(damaged_);
      coalesced_.insert(job->volumes.begin(), job->volumes.end());
      kind.version = job->death;
    }
    kind.role = catalog::SegmentRole::kVolume;
    kind.coalesces = true;
    kind.segment_bytes_max = parts_.coalescing.stored_bytes_max;
    VARVE_TRY(move(chunks.runs(), kind));
  }
  if (metrics_ != nullptr) metrics_->coalesced_bytes.add(done_.bytes_written - before);
  return {};
}

}  // namespace varve::layout
