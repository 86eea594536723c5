// SPDX-License-Identifier: Apache-2.0
// Measures the chunks used by versions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "layout/window.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// The chunks referenced by a sealed version.
struct ChunkUse {
  VersionNumber number{};
  std::uint64_t raw_bytes = 0;  ///< Raw size of all referenced chunks: estimate_bytes().
  base::IdRuns lone;            ///< Chunks used by no other version.
};

/// Returns the use of each sealed version, or only of `only`, ascending. Reads each version's set
/// of chunks once, and the locations of the chunks that differ between neighbours. `versions`: all
/// live versions, ascending; `hold` as for plan_deletion(). Memory: the differences.
/// Errors: kCorrupt.
[[nodiscard]] Result<std::vector<ChunkUse>> measure_chunk_use(
    const meta::Txn& txn, SeriesId series, StoreId store, const std::vector<LiveVersion>& versions,
    const OpenHold& hold, std::optional<VersionNumber> only);

}  // namespace varve::layout
