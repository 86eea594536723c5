// SPDX-License-Identifier: Apache-2.0
// Measures the chunks that versions refer to.
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

/// The chunks that one sealed version refers to.
struct ChunkUse {
  VersionNumber number{};
  std::uint64_t raw_bytes = 0;  ///< Raw size of all of them: estimate_bytes().
  base::IdRuns lone;            ///< Those that no other version refers to.
};

/// Returns the use of each sealed version, or only of `only`, ascending. Reads each version's set
/// of chunks once, and the locations of the chunks in which neighbours differ. `versions` are all
/// live ones, ascending; `hold` as for plan_deletion(). Memory: the differences.
/// Errors: kCorrupt.
[[nodiscard]] Result<std::vector<ChunkUse>> measure_chunk_use(
    const meta::Txn& txn, SeriesId series, StoreId store, const std::vector<LiveVersion>& versions,
    const OpenHold& hold, std::optional<VersionNumber> only);

}  // namespace varve::layout
