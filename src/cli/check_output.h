// SPDX-License-Identifier: Apache-2.0
// The output of the commands that search for damage.
#pragma once

#include "cli/command.h"
#include "varve/check.h"

namespace varve::cli {

/// Prints the damaged places with the files that they affect, then the sums.
void print_check_report(const CheckReport& report, bool json, const Context& context);

}  // namespace varve::cli
