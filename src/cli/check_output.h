// SPDX-License-Identifier: Apache-2.0
// The output of the commands that search for damage.
#pragma once

#include <cstdint>

#include "cli/command.h"
#include "varve/check.h"

namespace varve::cli {

/// Scope of a check.
enum class Checked : std::uint8_t {
  kVersions,  ///< Versions, chunks, containers, parity.
  kFiles,     ///< Only files, as check_outer() does.
};

/// Prints the damaged places with the affected files, then the sums of the scope.
void print_check_report(const CheckReport& report, bool json, const Context& context,
                        Checked checked = Checked::kVersions);

}  // namespace varve::cli
