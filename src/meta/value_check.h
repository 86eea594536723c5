// SPDX-License-Identifier: Apache-2.0
// Reads all values of an environment, to find unreadable values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// The values of a table that fail the checksum or do not open.
struct ValueFaults {
  std::uint64_t values = 0;
  std::string first;     ///< The error of the first faulty value.
  bool finished = true;  ///< False if `goes_on` has ended the search.
};

/// Reads all values of a table. Without keys (EnvOptions::without_keys), compares only the
/// checksums. The pages must be sound (meta/page_check.h). Calls `goes_on` about once a MiB with
/// the number of bytes read since the last call; `goes_on` returns false to stop, and may be empty.
/// Errors: the errors of LMDB.
[[nodiscard]] Result<ValueFaults> find_value_faults(
    const Txn& txn, TableIndex table, const std::function<bool(std::uint64_t bytes)>& goes_on = {});

}  // namespace varve::meta
