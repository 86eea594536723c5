// SPDX-License-Identifier: Apache-2.0
// The output of `varve store --dry-run`.
#pragma once

#include <string>

#include "cli/progress.h"
#include "control/stop_request.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

/// Prints the changes of a planned store into the repository; as JSON with `json`. Returns the sums
/// of the plan.
/// Errors: kRefused, after the plan and its problems are printed, if the store would be refused;
/// the errors of open_to_read() and plan_store().
[[nodiscard]] Result<TransferReport> print_plan(const std::string& repository,
                                                const StoreRequest& request, bool json,
                                                Progress& progress,
                                                const control::StopRequest& stop);

}  // namespace varve::cli
