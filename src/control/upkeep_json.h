// SPDX-License-Identifier: Apache-2.0
// The JSON form of the defaults for arranging and pruning, on the control socket.
#pragma once

#include <optional>

#include "control/json.h"
#include "control/protocol.h"
#include "varve/upkeep.h"

namespace varve::control {

[[nodiscard]] Json upkeep_to_json(const UpkeepSettings& settings);
/// Returns nullopt if the object is not one of upkeep_to_json().
[[nodiscard]] std::optional<UpkeepSettings> upkeep_from_json(const Json& object);

/// Reads the members `pool_index` and `upkeep` of a request for one of these settings, if they are
/// there. Returns false if one is not valid.
[[nodiscard]] bool take_repository_settings(const Json& object, Request& request);

}  // namespace varve::control
