// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::catalog {

/// Raises the next numbers of the catalog by a random gap: the versions of each series, the
/// containers and files of each store, and the births of the pool. A writer that continues an older
/// state leaves the gap, so that equal numbers in both histories are unlikely; births with equal
/// numbers differ by their marks (docs/FORMAT.md §3). An almost exhausted number is not raised.
/// Commits.
[[nodiscard]] Result<void> leave_random_gap(const meta::Env& catalog);

}  // namespace varve::catalog
