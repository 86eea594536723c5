// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "control/identity.h"

namespace varve::control {

[[nodiscard]] nlohmann::json identity_to_json(const Identity& identity);

/// Returns nothing if a member is missing or of a wrong type. Of another protocol's identity only
/// the number is read.
[[nodiscard]] std::optional<Identity> identity_from_json(const nlohmann::json& object);

}  // namespace varve::control
