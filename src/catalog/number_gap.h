// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::catalog {

/// Raises by a random number what the catalog gives next: the versions of each series, the
/// containers and files of each store, and the births of the pool. A writer that goes on from an
/// older state does so, so that the numbers of both histories hardly meet; where they do, their
/// marks differ (docs/FORMAT.md §3). A number that is almost used up is not raised. Commits.
[[nodiscard]] Result<void> leave_random_gap(const meta::Env& catalog);

}  // namespace varve::catalog
