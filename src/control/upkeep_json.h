// SPDX-License-Identifier: Apache-2.0
// The JSON form of the settings of a whole repository, on the control socket.
#pragma once

#include <optional>

#include "control/json.h"
#include "control/protocol.h"
#include "varve/upkeep.h"

namespace varve::control {

[[nodiscard]] Json upkeep_to_json(const UpkeepSettings& settings);
/// Returns nullopt if `object` is no result of upkeep_to_json().
[[nodiscard]] std::optional<UpkeepSettings> upkeep_from_json(const Json& object);

/// Adds the member `pool_index` or `upkeep` to a request with that setting.
void put_repository_settings(const Request& request, Json& line);
/// Reads the member added by put_repository_settings(), if present. Returns false if the member is
/// not valid.
[[nodiscard]] bool take_repository_settings(const Json& object, Request& request);

}  // namespace varve::control
