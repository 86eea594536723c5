// SPDX-License-Identifier: Apache-2.0
// Names of the arranging policies.
#pragma once

#include <string_view>

#include "varve/arrange.h"
#include "varve/result.h"

namespace varve::cli {

inline constexpr const char* kPolicyHelp =
    "When stored data is put in order: original, batched or tiered (default); kept for later";

/// kInvalid names those that there are.
[[nodiscard]] Result<ArrangePolicyKind> parse_policy(std::string_view name);
[[nodiscard]] std::string_view policy_name(ArrangePolicyKind policy);

}  // namespace varve::cli
