// SPDX-License-Identifier: Apache-2.0
// Deleting versions without copying a byte of chunk data: what goes, worked out once for both
// the forecast and the deed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/id_runs.h"
#include "layout/category_layout.h"
#include "layout/segment_ledger.h"
#include "layout/window.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct DeletionPlan {
  SegmentLedger ledger;
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;  ///< Raw.
  base::IdRuns dead;              ///< Of the active set: no version left refers to these chunks.
  base::IdRuns waiting;           ///< Only the open version refers to these.

  [[nodiscard]] Result<void> remove(const catalog::LocationRecord& record,
                                    const std::vector<catalog::LocationRecord>& rest);
};

/// Removes the chunks' locations, where `wanted` says so of the container's record (always, if it
/// is empty). Where a part of a location run goes and the container's table cannot be read, the
/// run stays, and takes space until it is arranged.
[[nodiscard]] Result<void> remove_chunks(
    CategoryLayout& layout, const meta::Txn& txn, const base::IdRuns& chunks,
    const std::function<Result<bool>(std::uint32_t container)>& wanted, DeletionPlan& plan);

/// The chunks that two or more versions of the series refer to.
[[nodiscard]] Result<base::IdRuns> shared_chunks(const meta::Txn& txn, SeriesId series,
                                                 const OpenHold& hold = {});

/// The chunks that a version of `gone` refers to and no other sealed one: what dies with them, but
/// for what the open version holds.
[[nodiscard]] Result<base::IdRuns> dying_chunks(const meta::Txn& txn, SeriesId series,
                                                const std::vector<VersionNumber>& gone);

/// Works out what of the series' chunks goes with the versions `gone`. `txn` must outlive the
/// plan. `hold`: what the open version refers to; without it, all that it may refer to stays. In
/// volumes it is the categories whose versions are all gone, which stand at the end of their file;
/// in the active set it is what no other version refers to. kCorrupt if a chunk in such a category
/// is referred to all the same: then nothing may be deleted.
///
/// `shared`, if given, are the series' shared_chunks(); `gone` is one version then. So what each of
/// many versions alone would give back is found without comparing each with all others; only the
/// search for that damage is left out.
[[nodiscard]] Result<DeletionPlan> plan_deletion(CategoryLayout& layout, const meta::Txn& txn,
                                                 const std::vector<VersionNumber>& gone,
                                                 const OpenHold& hold = {},
                                                 const base::IdRuns* shared = nullptr);

}  // namespace varve::layout
