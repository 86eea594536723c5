// SPDX-License-Identifier: Apache-2.0
// Reads and repairs the catalog's notes of deletions (docs/FORMAT.md §7, setting `deleted`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/deletion_record.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Returns the note of a series; nullopt if the note is missing or damaged. Logs a warning about a
/// damaged note: a version of the labels then counts as deleted only without data of its own.
/// Errors: the errors of the catalog other than damage.
[[nodiscard]] Result<std::optional<catalog::DeletionRecord>> readable_deletion(const meta::Txn& txn,
                                                                               SeriesId series);

/// A series with a damaged note.
struct DamagedNote {
  SeriesId series{};
  std::string name;  ///< Name of the series.
};
/// Returns the series whose notes are damaged.
/// Errors: the errors of the catalog other than damage.
[[nodiscard]] Result<std::vector<DamagedNote>> find_damaged_notes(const meta::Txn& txn);
/// Removes the damaged notes. A missing note is sound: no deletion waits for its labels.
/// Makes no commit without damaged notes.
/// Errors: the errors of the catalog.
[[nodiscard]] Result<void> erase_damaged_notes(const meta::Env& catalog);

}  // namespace varve::maintain
