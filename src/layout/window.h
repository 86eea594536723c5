// SPDX-License-Identifier: Apache-2.0
// Which versions there are, and which chunks the next one may refer to (MFDedup, FAST'21 §3.1,
// with a window of more than one version and versions that do not count).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

struct LiveVersion {
  VersionNumber number{};
  bool sealed = false;
  bool side = false;
};

/// Everything of a series that must stay readable, in ascending number. An open version
/// counts: until it is sealed, it may refer to all that was in the window when it was opened.
[[nodiscard]] Result<std::vector<LiveVersion>> live_versions(const meta::Txn& txn, SeriesId series);

/// What the series' open version really refers to, of the chunks that it may refer to.
struct OpenHold {
  VersionNumber number{};  ///< 0: nothing is known beyond the record of what it may refer to.
  base::IdRuns chunks;
};

/// What keeps chunks from being deleted or moved away: those that a version refers to, or may. An
/// open one that was never worked on has no record of them and refers to none.
[[nodiscard]] Result<base::IdRuns> protected_chunks(const meta::Txn& txn, SeriesId series,
                                                    const LiveVersion& version);

/// The same for a deletion, which takes away what an open version may refer to but does not
/// (docs/ORDERING.md O33).
[[nodiscard]] Result<base::IdRuns> held_chunks(const meta::Txn& txn, SeriesId series,
                                               const LiveVersion& version, const OpenHold& hold);

/// The `window`-th newest main version: it and all sealed ones after it make up the window. 0
/// if there are fewer.
[[nodiscard]] VersionNumber window_start(const std::vector<LiveVersion>& versions,
                                         std::uint32_t window);

/// The newest of the versions that is at most `number`, sealed or open; 0 if there is none.
[[nodiscard]] VersionNumber newest_at_most(const std::vector<LiveVersion>& versions,
                                           VersionNumber number);

/// The chunks of the sealed versions in the window. kCorrupt if a version's record of them is
/// missing or damaged; if `tolerant`, that version is passed over, which costs deduplication.
[[nodiscard]] Result<base::IdRuns> window_chunks(const meta::Txn& txn, SeriesId series,
                                                 const std::vector<LiveVersion>& versions,
                                                 std::uint32_t window, bool tolerant);

/// Before a version is worked on for the first time: records what it may refer to, and brings
/// volumes back to the active set whose chunks are in the window again since newer versions were
/// deleted. Nothing moves: only the files' records change.
[[nodiscard]] Result<void> open_window(meta::WriteTxn& txn, SeriesId series, VersionNumber number);

/// True if a version that is about to be sealed with these chunks should not count for the
/// window: it covers less than half of the newest main version, and it is not the second one in
/// a row that is small but alike.
[[nodiscard]] Result<bool> is_side_version(const meta::Txn& txn, SeriesId series,
                                           const base::IdRuns& chunks);

/// The window as it will be when a version with these chunks is sealed as the newest.
[[nodiscard]] Result<base::IdRuns> window_after(const meta::Txn& txn, SeriesId series,
                                                const base::IdRuns& chunks, bool side);

/// Raw bytes of chunks; where a location run is not wanted as a whole, by its average chunk.
[[nodiscard]] Result<std::uint64_t> estimate_bytes(const meta::Txn& txn, SeriesId series,
                                                   const base::IdRuns& ids);

}  // namespace varve::layout
