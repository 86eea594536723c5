// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "control/identity.h"
#include "control/json.h"

namespace varve::control {

[[nodiscard]] Json identity_to_json(const Identity& identity);

/// Returns the identity, or nullopt if a member is missing or has the wrong type. For an identity
/// of another protocol, reads only the protocol number.
[[nodiscard]] std::optional<Identity> identity_from_json(const Json& object);

}  // namespace varve::control
