// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "layout/window.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Visits the versions of live_versions() from the newest to the oldest, and reads only the records
/// of returned versions. Not thread-safe.
/// Lifetime: `txn` outlives the walk.
class VersionWalk {
 public:
  VersionWalk(const meta::Txn& txn, SeriesId series) : txn_(txn), series_(series) {}

  /// Returns the next older version, or nullopt after the oldest version.
  [[nodiscard]] Result<std::optional<LiveVersion>> next();

 private:
  const meta::Txn& txn_;
  const SeriesId series_;
  std::optional<meta::Cursor> cursor_;
};

/// Returns the versions from the start of the window on, ascending; all versions if there are fewer
/// than `window` main versions. window_start() and window_chunks() need no older versions.
[[nodiscard]] Result<std::vector<LiveVersion>> recent_versions(const meta::Txn& txn,
                                                               SeriesId series,
                                                               std::uint32_t window);

}  // namespace varve::layout
