// SPDX-License-Identifier: Apache-2.0
// Deletes versions without copying a byte of chunk data. The same plan serves the forecast and the
// deletion.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "layout/category_layout.h"
#include "layout/dead_categories.h"
#include "layout/segment_ledger.h"
#include "layout/window.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct DeletionPlan {
  SegmentLedger ledger;
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;  ///< Raw size of the deleted chunks.
  base::IdRuns dead;              ///< Chunks to which no remaining version refers.
  base::IdRuns waiting;           ///< Chunks to which only the open version refers.
  std::uint64_t unread = 0;       ///< Location runs that stay although partly dead.

  [[nodiscard]] Result<void> remove(const catalog::LocationRecord& record,
                                    const std::vector<catalog::LocationRecord>& rest);
};

/// Removes the locations of `chunks`, and all remaining locations in the containers of
/// `categories`. A location run can be removed in part only if the container's table can be read.
/// Otherwise the run stays, and takes space until the run is arranged or the category is dead.
/// Returns the chunks removed beside `chunks`.
[[nodiscard]] Result<base::IdRuns> remove_chunks(CategoryLayout& layout, const meta::Txn& txn,
                                                 const base::IdRuns& chunks,
                                                 DeadCategories& categories, DeletionPlan& plan);

/// Returns the chunks to which a version of `gone` refers and no other sealed version refers. The
/// chunks die with the versions, except for chunks held by the open version.
[[nodiscard]] Result<base::IdRuns> dying_chunks(const meta::Txn& txn, SeriesId series,
                                                const std::vector<VersionNumber>& gone);

/// Plans the deletion of the versions `gone`. Removes the chunks to which no remaining version
/// refers, and the categories of volumes whose versions are all gone. In a volume with a single
/// death, the dead categories are at the end of the file. `hold` has the chunks to which the open
/// version refers; without `hold`, all chunks to which the open version may refer stay.
/// Errors: kCorrupt if a version refers to a chunk in a category to be removed; then nothing may be
/// deleted.
/// Lifetime: `txn` must outlive the plan.
[[nodiscard]] Result<DeletionPlan> plan_deletion(CategoryLayout& layout, const meta::Txn& txn,
                                                 const std::vector<VersionNumber>& gone,
                                                 const OpenHold& hold = {});

}  // namespace varve::layout
