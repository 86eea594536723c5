// SPDX-License-Identifier: Apache-2.0
// The versions of a series, and the chunks that the next one may refer to (MFDedup, FAST'21 §3.1).
// Unlike there, the window may have more than one version, and some versions do not count.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct LiveVersion {
  VersionNumber number{};
  bool sealed = false;
  bool side = false;
};

/// Returns all versions of a series that must stay readable, in ascending number. An open version
/// counts: until it is sealed, it may refer to all chunks that were in the window when it was
/// opened.
[[nodiscard]] Result<std::vector<LiveVersion>> live_versions(const meta::Txn& txn, SeriesId series);

/// The chunks that the series' open version really refers to, of those that it may refer to.
struct OpenHold {
  VersionNumber number{};  ///< 0 if only the record of possible references is known.
  base::IdRuns chunks;
};

/// Returns the chunks that a version refers to, or may refer to: they must not be deleted or moved
/// away. An open version that was never worked on has no record of them and refers to none.
[[nodiscard]] Result<base::IdRuns> protected_chunks(const meta::Txn& txn, SeriesId series,
                                                    const LiveVersion& version);

/// Returns the same for a deletion, which removes chunks that an open version may refer to but does
/// not (docs/ORDERING.md O15).
[[nodiscard]] Result<base::IdRuns> held_chunks(const meta::Txn& txn, SeriesId series,
                                               const LiveVersion& version, const OpenHold& hold);

/// Returns whether a version after `death` refers, or may refer, to one of the chunks.
[[nodiscard]] Result<bool> used_after(const meta::Txn& txn, SeriesId series,
                                      const base::IdRuns& chunks, VersionNumber death);

/// Returns the `window`-th newest main version; 0 if there are fewer. It and all sealed versions
/// after it make up the window.
[[nodiscard]] VersionNumber window_start(const std::vector<LiveVersion>& versions,
                                         std::uint32_t window);

/// Returns the newest version, sealed or open, with a number of at most `number`; 0 if there is
/// none. `versions` ascend.
[[nodiscard]] VersionNumber newest_at_most(const std::vector<LiveVersion>& versions,
                                           VersionNumber number);

/// Returns the chunks of the sealed versions in the window. If `tolerant`, skips a version whose
/// record of them is missing or damaged, which costs deduplication.
/// Errors: kCorrupt for such a record unless `tolerant`.
[[nodiscard]] Result<base::IdRuns> window_chunks(const meta::Txn& txn, SeriesId series,
                                                 const std::vector<LiveVersion>& versions,
                                                 std::uint32_t window, bool tolerant);

/// Prepares a version for the first work on it. Records the chunks that it may refer to. Returns
/// volumes to the active set if their chunks are in the window again because newer versions were
/// deleted. No data moves: only the files' records change.
[[nodiscard]] Result<void> open_window(meta::WriteTxn& txn, SeriesId series, StoreId store,
                                       VersionNumber number);

/// Returns whether a version that is about to be sealed with these chunks should not count for the
/// window. Such a version covers less than half of the newest main version, and is not the second
/// in a row that is small but alike.
[[nodiscard]] Result<bool> is_side_version(const meta::Txn& txn, SeriesId series, StoreId store,
                                           const base::IdRuns& chunks);

/// Returns the window as it will be after a version with these chunks is sealed as the newest.
[[nodiscard]] Result<base::IdRuns> window_after(const meta::Txn& txn, SeriesId series,
                                                const base::IdRuns& chunks, bool side);

/// Returns the raw size of the chunks that are in the store, in bytes. Estimates a part of a
/// location run by the run's average chunk.
[[nodiscard]] Result<std::uint64_t> estimate_bytes(const meta::Txn& txn, StoreId store,
                                                   const base::IdRuns& ids);

}  // namespace varve::layout
