// SPDX-License-Identifier: Apache-2.0
// The JSON of requests and replies about known damage.
#pragma once

#include "control/json.h"
#include "control/protocol.h"

namespace varve::control {

/// Adds the members of Operation::kKnownDamage. Does nothing for other requests and replies.
void put_damage(const Request& request, Json& line);
void put_damage(const Reply& reply, Json& line);
/// Read the members of Operation::kKnownDamage. Return false if a member is missing or has the
/// wrong type.
[[nodiscard]] bool take_damage(const Json& object, Request& request);
[[nodiscard]] bool take_damage(const Json& object, Reply& reply);

}  // namespace varve::control
