// SPDX-License-Identifier: Apache-2.0
// Names of the arranging policies.
#pragma once

#include <string_view>

#include "varve/arrange.h"
#include "varve/result.h"

namespace varve::cli {

inline constexpr const char* kPolicyHelp =
    "When to put stored data in order: original, batched or tiered (default); the repository "
    "stores it";

/// Returns the policy of this name.
/// Errors: kInvalid, with the possible names.
[[nodiscard]] Result<ArrangePolicyKind> parse_policy(std::string_view name);
[[nodiscard]] std::string_view policy_name(ArrangePolicyKind policy);

}  // namespace varve::cli
