// SPDX-License-Identifier: Apache-2.0
// Copies an encrypted environment to a new environment under another key (docs/ORDERING.md O38).
#pragma once

#include <functional>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// A table that is not copied, because the table's keys depend on the environment's salt.
struct DerivedTable {
  TableIndex table = 0;
  /// Writes the records of the table, computed from the other tables.
  std::function<Result<void>(WriteTxn& copy)> fill;
};

/// Writes all records to `copy`, a new environment with the same tables. Commits several times.
/// Errors: kCorrupt if a record of the original cannot be read.
[[nodiscard]] Result<void> copy_records(const Txn& original, const Env& copy,
                                        const DerivedTable& derived);

/// Compares the decrypted records of all tables but the derived table. Errors: kCorrupt for a
/// difference.
[[nodiscard]] Result<void> compare_records(const Txn& original, const Txn& copy,
                                           const DerivedTable& derived);

}  // namespace varve::meta
