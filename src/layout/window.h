// SPDX-License-Identifier: Apache-2.0
// The versions of a series, and the chunks to which the next version may refer (MFDedup, FAST'21
// §3.1). Unlike in MFDedup, the window may have more than one version, and some versions do not
// count.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "base/tree_size.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct LiveVersion {
  VersionNumber number{};
  bool sealed = false;
  bool side = false;
  base::TreeSize size{};  ///< Valid for a sealed version.
};

/// Returns all versions of a series that must stay readable, in ascending number. An open version
/// counts: until the seal, the version may refer to all chunks of the window at the time of
/// opening.
[[nodiscard]] Result<std::vector<LiveVersion>> live_versions(const meta::Txn& txn, SeriesId series);

/// The referenced chunks of the series' open version, a subset of the possible references.
struct OpenHold {
  VersionNumber number{};  ///< 0 if only the record of possible references is known.
  base::IdRuns chunks;
};

/// Returns the chunks to which a version refers, or may refer. They must not be deleted or moved
/// away. An open version without any work has no record of chunks and refers to none.
[[nodiscard]] Result<base::IdRuns> protected_chunks(const meta::Txn& txn, SeriesId series,
                                                    const LiveVersion& version);

/// Returns the chunks as protected_chunks(), for a deletion: a deletion also removes chunks to
/// which an open version may refer but does not (docs/ORDERING.md O15).
[[nodiscard]] Result<base::IdRuns> held_chunks(const meta::Txn& txn, SeriesId series,
                                               const LiveVersion& version, const OpenHold& hold);

/// Returns whether a version after `death` refers, or may refer, to a chunk of `chunks`.
[[nodiscard]] Result<bool> used_after(const meta::Txn& txn, SeriesId series,
                                      const base::IdRuns& chunks, VersionNumber death);

/// Returns the `window`-th newest main version; 0 if there are fewer. The window consists of the
/// returned version and all later sealed versions.
[[nodiscard]] VersionNumber window_start(const std::vector<LiveVersion>& versions,
                                         std::uint32_t window);

/// Returns the newest version, sealed or open, with a number of at most `number`; 0 if there is
/// none. `versions` ascend.
[[nodiscard]] VersionNumber newest_at_most(const std::vector<LiveVersion>& versions,
                                           VersionNumber number);

/// Returns the chunks of the sealed versions in the window. If `tolerant`, skips a version with a
/// missing or damaged record of chunks; skipping costs deduplication.
/// Errors: kCorrupt for a missing or damaged record unless `tolerant`.
[[nodiscard]] Result<base::IdRuns> window_chunks(const meta::Txn& txn, SeriesId series,
                                                 const std::vector<LiveVersion>& versions,
                                                 std::uint32_t window, bool tolerant);

/// Prepares a version for the first work. Records the chunks to which the version may refer.
/// Returns volumes to the active set if their chunks are in the window again after a deletion of
/// newer versions. No data moves: only the files' records change.
/// Returns the sealed versions whose record of retention changed: an earlier release took versions
/// for side versions that are whole (docs/decisions/167).
[[nodiscard]] Result<std::vector<VersionNumber>> open_window(meta::WriteTxn& txn, SeriesId series,
                                                             StoreId store, VersionNumber number);

/// Returns whether a version about to be sealed is a side version, which does not count for the
/// window. A side version is empty or a part of the newest main version (base::is_partial), and is
/// not the second such version in a row with similar content.
[[nodiscard]] Result<bool> is_side_version(const meta::Txn& txn, SeriesId series, StoreId store,
                                           const base::TreeSize& size, const base::IdRuns& chunks);

/// Returns the window after a seal of `chunks` as the newest version.
[[nodiscard]] Result<base::IdRuns> window_after(const meta::Txn& txn, SeriesId series,
                                                const base::IdRuns& chunks, bool side);

/// Returns the raw size of the chunks in the store, in bytes. Estimates a part of a location run by
/// the run's average chunk.
[[nodiscard]] Result<std::uint64_t> estimate_bytes(const meta::Txn& txn, StoreId store,
                                                   const base::IdRuns& ids);

}  // namespace varve::layout
