// SPDX-License-Identifier: Apache-2.0
// Deletes versions without copying a byte of chunk data. One plan serves both the forecast and the
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
  base::IdRuns dead;              ///< Chunks that no version left refers to.
  base::IdRuns waiting;           ///< Chunks that only the open version refers to.
  std::uint64_t unread = 0;       ///< Location runs that stay although a part of them is dead.

  [[nodiscard]] Result<void> remove(const catalog::LocationRecord& record,
                                    const std::vector<catalog::LocationRecord>& rest);
};

/// Removes the chunks' locations, and all others in the containers of `categories`. A location run
/// can be removed in part only if the container's table can be read. Otherwise the run stays, and
/// takes space until it is arranged or its category is dead. Returns the chunks that were removed
/// beside `chunks`.
[[nodiscard]] Result<base::IdRuns> remove_chunks(CategoryLayout& layout, const meta::Txn& txn,
                                                 const base::IdRuns& chunks,
                                                 DeadCategories& categories, DeletionPlan& plan);

/// Returns the chunks that a version of `gone` refers to and no other sealed one. They die with
/// those versions, except for chunks that the open version holds.
[[nodiscard]] Result<base::IdRuns> dying_chunks(const meta::Txn& txn, SeriesId series,
                                                const std::vector<VersionNumber>& gone);

/// Plans the deletion of the versions `gone`. Removes the chunks that no other version refers to,
/// and the categories of volumes whose versions are all gone. Those of a volume with one death are
/// at the end of the file. `hold` has the chunks that the open version refers to; without it, all
/// chunks that the open version may refer to stay. Errors: kCorrupt if a version refers to a chunk
/// in a category to be removed; then nothing may be deleted. Lifetime: `txn` must outlive the plan.
[[nodiscard]] Result<DeletionPlan> plan_deletion(CategoryLayout& layout, const meta::Txn& txn,
                                                 const std::vector<VersionNumber>& gone,
                                                 const OpenHold& hold = {});

}  // namespace varve::layout
