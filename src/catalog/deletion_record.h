// SPDX-License-Identifier: Apache-2.0
// The stored note of the last deletion in a series (docs/FORMAT.md §7).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The prefix of the notes' keys among the settings; the number of the series follows.
inline constexpr std::string_view kDeletedSetting = "deleted";

/// The versions deleted since the last write of a series' labels.
struct DeletionRecord {
  std::uint64_t labels_stamp = 0;             ///< Stamp of the labels on disk at the deletion.
  std::map<VersionNumber, Timestamp> sealed;  ///< Time of the seal of each deleted version.
};

/// Returns the note of a series; nullopt if missing.
/// Errors: kCorrupt.
[[nodiscard]] Result<std::optional<DeletionRecord>> find_deletion(const meta::Txn& txn,
                                                                  SeriesId series);
/// Notes a deletion. Adds to the present note if the labels have not been written since; otherwise
/// replaces the present note.
[[nodiscard]] Result<void> note_deletion(meta::WriteTxn& txn, SeriesId series,
                                         DeletionRecord record);
/// Removes the note of a series, if present.
[[nodiscard]] Result<void> erase_deletion(meta::WriteTxn& txn, SeriesId series);

}  // namespace varve::catalog
