// SPDX-License-Identifier: Apache-2.0
// Names of the arranging policies.
#pragma once

#include <string>
#include <string_view>

#include "varve/arrange.h"
#include "varve/result.h"

namespace varve::cli {

/// Returns the help text of an option for a policy.
[[nodiscard]] std::string policy_help();

/// Returns the named policy.
/// Errors: kInvalid, with the possible names.
[[nodiscard]] Result<ArrangePolicyKind> parse_policy(std::string_view name);

}  // namespace varve::cli
