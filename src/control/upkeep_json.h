// SPDX-License-Identifier: Apache-2.0
// The JSON form of the settings of a whole repository, on the control socket.
#pragma once

#include <optional>

#include "control/json.h"
#include "control/protocol.h"
#include "varve/upkeep.h"

namespace varve::control {

[[nodiscard]] Json upkeep_to_json(const UpkeepSettings& settings);
/// Returns nullopt if the object is not one of upkeep_to_json().
[[nodiscard]] std::optional<UpkeepSettings> upkeep_from_json(const Json& object);

/// Adds the member `pool_index`, `upkeep` or `superblock` to a request that has one of them.
void put_repository_settings(const Request& request, Json& line);
/// Reads what put_repository_settings() adds, if it is there. Returns false if it is not valid.
[[nodiscard]] bool take_repository_settings(const Json& object, Request& request);

}  // namespace varve::control
