// SPDX-License-Identifier: Apache-2.0
// The changes that a store would make: `varve store --dry-run`.
#pragma once

#include <string>

#include "cli/progress.h"
#include "control/stop_request.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

/// Prints the changes that a store into the repository would make; as JSON with `json`. Returns the
/// sums of the plan.
/// Errors: those of open_to_read() and plan_store().
[[nodiscard]] Result<TransferReport> print_plan(const std::string& repository,
                                                const StoreRequest& request, bool json,
                                                Progress& progress,
                                                const control::StopRequest& stop);

}  // namespace varve::cli
