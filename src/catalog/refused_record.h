// SPDX-License-Identifier: Apache-2.0
// The stored note of the last refused store into a series (docs/FORMAT.md §7).
#pragma once

#include <optional>
#include <string_view>

#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/refused_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The prefix of the notes' keys among the settings; the number of the series follows.
inline constexpr std::string_view kRefusedSetting = "refused";

/// The note of a refused store.
struct RefusedRecord {
  VersionNumber
      newest{};  ///< The series' newest sealed version at the time of the store; 0 if none.
  RefusedStore store;
};

/// Returns the note of a series; nullopt if missing.
/// Errors: kCorrupt.
[[nodiscard]] Result<std::optional<RefusedRecord>> find_refused(const meta::Txn& txn,
                                                                SeriesId series);
/// Stores the note of a series in place of an earlier note.
[[nodiscard]] Result<void> put_refused(meta::WriteTxn& txn, SeriesId series,
                                       const RefusedRecord& record);
/// Removes the note of a series, if present.
[[nodiscard]] Result<void> erase_refused(meta::WriteTxn& txn, SeriesId series);

}  // namespace varve::catalog
