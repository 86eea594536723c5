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

/// Returns the record of a birth; nullopt if it has no mark. Errors: kCorrupt.
[[nodiscard]] Result<std::optional<format::Birth>> find_birth(const meta::Txn& txn, StoreId store,
                                                              VersionNumber birth);
[[nodiscard]] Result<void> put_birth(meta::WriteTxn& txn, StoreId store, VersionNumber birth,
                                     const format::Birth& record);
/// Erases those of `births` of which the store has no chunk, nor an alias.
[[nodiscard]] Result<void> erase_births_without_chunks(meta::WriteTxn& txn, StoreId store,
                                                       const std::set<VersionNumber>& births);
/// Returns the births of `ids` that have marks. `own`: the store of the chunks that are not the
/// pool's.
[[nodiscard]] Result<format::Births> births_of(const meta::Txn& txn, StoreId own,
                                               const base::IdRuns& ids);
/// Calls `visit` for each birth of a store that has a mark, ascending, until `visit` returns false.
[[nodiscard]] Result<void> for_each_birth(
    const meta::Txn& txn, StoreId store,
    const std::function<Result<bool>(VersionNumber, const format::Birth&)>& visit);

/// Returns the marks of births.
[[nodiscard]] format::BirthMarks marks_of(const format::Births& births);

}  // namespace varve::catalog
