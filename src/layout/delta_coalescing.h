// SPDX-License-Identifier: Apache-2.0
// Chooses volumes of successive deaths to compress together, and reads the chunks for a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/layout_records.h"
#include "layout/category_layout.h"
#include "layout/coalescing.h"
#include "layout/delta_plan.h"
#include "layout/window.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// The volumes of successive deaths, to be written again as volumes of the highest death.
struct DeltaJob {
  std::vector<std::vector<SegmentNumber>> volumes;  ///< One list for each death, ascending.
  VersionNumber death{};                            ///< The highest death.
  /// Whether the last death is not joined yet. The death's volumes with prefixes stay as they are
  /// then: an interrupted job has written them.
  bool last_is_single = false;
};

/// Returns the next job, or nullopt if none is left.
/// - The distance of a death's number from the previous death's number is the death's span: so many
///   deaths are joined in the death's volumes, at most.
/// - Successive deaths are joined if the span doubles for each joined death, until the span is the
///   fan; if earlier joinings have saved little, only once a fan of deaths comes together. A
///   fan of joined deaths older than the window are joined once more. So a chunk is written
///   again log2(fan) + 1 times at most.
/// - Volumes of a death with more than half of the bytes dead are written again.
///
/// Opening a version takes the volumes of the window back as files aside, joined ones too; the
/// arranger makes them volumes again (Arranger::settle). `versions` ascend; `window` is
/// ArrangeSettings::window.
[[nodiscard]] std::optional<DeltaJob> next_delta_job(
    const std::vector<catalog::SegmentRecord>& segments, const std::vector<LiveVersion>& versions,
    std::uint32_t window, const CoalescingLimits& limits);

/// Divides a job's chunks into parts of about `part_bytes` raw bytes: the same share of each death,
/// in the order of the ids, so that a chunk and its replacement are probably in one part.
/// Leaves out `excluded`, and containers with an unreadable header.
[[nodiscard]] Result<std::vector<base::IdRuns>> parts_of(CategoryLayout& layout,
                                                         const meta::Txn& txn, const DeltaJob& job,
                                                         const base::IdRuns& excluded,
                                                         std::uint64_t part_bytes);

/// Reads `chunks`, and returns a plan. An unreadable chunk is like no other chunk.
/// Adds the bytes read to `bytes_read`.
[[nodiscard]] Result<DeltaPlan> plan_delta_of(CategoryLayout& layout, const base::IdRuns& chunks,
                                              std::uint64_t& bytes_read);

}  // namespace varve::layout
