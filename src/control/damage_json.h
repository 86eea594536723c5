// SPDX-License-Identifier: Apache-2.0
// The JSON of replies about known damage.
#pragma once

#include "control/json.h"
#include "control/protocol.h"

namespace varve::control {

/// Adds the member `known_damage`, if the reply has damage.
void put_damage(const Reply& reply, Json& line);
/// Reads the member added by put_damage(), if present. Returns false if the member is not valid.
[[nodiscard]] bool take_damage(const Json& object, Reply& reply);

}  // namespace varve::control
