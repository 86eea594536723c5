// SPDX-License-Identifier: Apache-2.0
// The output of `varve stats SERIES/VERSION`.
#pragma once

#include <string>

#include "cli/output.h"
#include "varve/rewrite.h"

namespace varve::cli {

/// Returns the figures as one JSON object. The counts of the seal are missing if there are none.
[[nodiscard]] Json pool_usage_json(const PoolUsage& usage);
/// Returns the figures in words, as two tables. `exact`: with exact numbers of bytes.
[[nodiscard]] std::string pool_usage_text(const PoolUsage& usage, bool exact);

}  // namespace varve::cli
