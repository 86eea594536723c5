// SPDX-License-Identifier: Apache-2.0
// How the commands that look for damage tell of it.
#pragma once

#include "cli/command.h"
#include "varve/check.h"

namespace varve::cli {

/// The damaged places with the files that they touch, then the sums.
void print_check_report(const CheckReport& report, bool json, const Context& context);

}  // namespace varve::cli
