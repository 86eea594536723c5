// SPDX-License-Identifier: Apache-2.0
// The stored defaults for arranging, pruning and storing (docs/FORMAT.md §7).
#pragma once

#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/upkeep.h"

namespace varve::catalog {

/// Returns the stored settings, or the initial settings if none are stored.
/// Errors: kCorrupt; kUnsupported for settings of a newer Varve.
[[nodiscard]] Result<UpkeepSettings> find_upkeep_settings(const meta::Txn& txn);
[[nodiscard]] Result<void> put_upkeep_settings(meta::WriteTxn& txn, const UpkeepSettings& settings);

}  // namespace varve::catalog
