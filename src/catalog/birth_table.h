// SPDX-License-Identifier: Apache-2.0
// The births with marks of a store.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "base/id_runs.h"
#include "base/ids.h"
#include "format/birth_mark.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// Returns all possible chunk ids of a birth.
[[nodiscard]] base::IdRuns ids_of_birth(VersionNumber birth);
/// Returns the store of a birth's chunks. `own`: the store of the chunks outside the pool.
[[nodiscard]] StoreId store_of_birth(StoreId own, VersionNumber birth);
/// Returns the record of a new birth, with a new mark.
/// Errors: kIo without random bytes.
[[nodiscard]] Result<format::Birth> new_birth(SeriesId series, VersionNumber version);
/// Returns whether the store has a chunk of a birth, or an alias.
[[nodiscard]] Result<bool> has_chunks(const meta::Txn& txn, StoreId store, VersionNumber birth);

/// Returns the record of a birth; nullopt for a birth without a mark. Errors: kCorrupt.
[[nodiscard]] Result<std::optional<format::Birth>> find_birth(const meta::Txn& txn, StoreId store,
                                                              VersionNumber birth);
[[nodiscard]] Result<void> put_birth(meta::WriteTxn& txn, StoreId store, VersionNumber birth,
                                     const format::Birth& record);
/// Erases the births of `births` without a chunk, alias, page or recipe in the catalog.
[[nodiscard]] Result<void> erase_unused_births(meta::WriteTxn& txn, StoreId store,
                                               const std::set<VersionNumber>& births);
/// Returns the births with marks of `ids`. `own`: as for store_of_birth().
[[nodiscard]] Result<format::Births> births_of(const meta::Txn& txn, StoreId own,
                                               const base::IdRuns& ids);
/// Returns the births named by the manifest of a version: the births of the version's chunks, and
/// all births of the series up to the version. A page or a recipe has the birth of the version that
/// stored the object.
[[nodiscard]] Result<format::Births> births_named_by(const meta::Txn& txn, SeriesId series,
                                                     VersionNumber number);
/// Calls `visit` for each birth with a mark, ascending, until `visit` returns false.
[[nodiscard]] Result<void> for_each_birth(
    const meta::Txn& txn, StoreId store,
    const std::function<Result<bool>(VersionNumber, const format::Birth&)>& visit);

/// Returns the marks of births.
[[nodiscard]] format::BirthMarks marks_of(const format::Births& births);

}  // namespace varve::catalog
