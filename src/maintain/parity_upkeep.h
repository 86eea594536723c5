// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "meta/lmdb.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// The result of keep_parity().
struct ParityUpkeep {
  bool finished = false;  ///< False if `pass` stopped the upkeep; complete groups remain.
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};

/// Creates the parity required by the catalog's settings, for the files that no open version
/// writes, and removes unused parity. Calls `pass` with the bytes of each step; `pass` returns
/// false to stop. A full disk and damaged files are logged, not returned. One call at a time for a
/// series.
[[nodiscard]] Result<ParityUpkeep> keep_parity(const meta::Env& catalog, store::SegmentStore& store,
                                               SeriesId series,
                                               const std::function<bool(std::uint64_t)>& pass);

}  // namespace varve::maintain
