// SPDX-License-Identifier: Apache-2.0
// The births of a store that have marks.
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

/// Returns all ids that chunks of a birth may have.
[[nodiscard]] base::IdRuns ids_of_birth(VersionNumber birth);
/// Returns the store of a birth's chunks. `own`: the store of the chunks that are not the pool's.
[[nodiscard]] StoreId store_of_birth(StoreId own, VersionNumber birth);
/// Returns the record of a birth that begins, with a mark of its own.
/// Errors: kIo without random bytes.
[[nodiscard]] Result<format::Birth> new_birth(SeriesId series, VersionNumber version);
/// Returns whether the store has a chunk of a birth, or an alias.
[[nodiscard]] Result<bool> has_chunks(const meta::Txn& txn, StoreId store, VersionNumber birth);

/// Returns the record of a birth; nullopt if it has no mark. Errors: kCorrupt.
[[nodiscard]] Result<std::optional<format::Birth>> find_birth(const meta::Txn& txn, StoreId store,
                                                              VersionNumber birth);
[[nodiscard]] Result<void> put_birth(meta::WriteTxn& txn, StoreId store, VersionNumber birth,
                                     const format::Birth& record);
/// Erases those of `births` of which the catalog has no chunk, alias, page or recipe.
[[nodiscard]] Result<void> erase_unused_births(meta::WriteTxn& txn, StoreId store,
                                               const std::set<VersionNumber>& births);
/// Returns the births of `ids` that have marks. `own`: as for store_of_birth().
[[nodiscard]] Result<format::Births> births_of(const meta::Txn& txn, StoreId own,
                                               const base::IdRuns& ids);
/// Returns the births that the manifest of a version names: those of its chunks, and all of its
/// series up to its own. A page or a recipe has the birth of the version that stored it.
[[nodiscard]] Result<format::Births> births_named_by(const meta::Txn& txn, SeriesId series,
                                                     VersionNumber number);
/// Calls `visit` for each birth of a store that has a mark, ascending, until `visit` returns false.
[[nodiscard]] Result<void> for_each_birth(
    const meta::Txn& txn, StoreId store,
    const std::function<Result<bool>(VersionNumber, const format::Birth&)>& visit);

/// Returns the marks of births.
[[nodiscard]] format::BirthMarks marks_of(const format::Births& births);

}  // namespace varve::catalog
