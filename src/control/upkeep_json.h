// SPDX-License-Identifier: Apache-2.0
// The JSON form of the defaults for arranging and pruning, on the control socket.
#pragma once

#include <optional>

#include "control/json.h"
#include "varve/upkeep.h"

namespace varve::control {

[[nodiscard]] Json upkeep_to_json(const UpkeepSettings& settings);
/// Returns nullopt if the object is not one of upkeep_to_json().
[[nodiscard]] std::optional<UpkeepSettings> upkeep_from_json(const Json& object);

}  // namespace varve::control
