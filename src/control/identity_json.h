// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "control/identity.h"
#include "control/json_fields.h"

namespace varve::control {

template <>
struct JsonOf<Identity> {
  [[nodiscard]] static Json write(const Identity& identity);
  /// Returns the identity, or nullopt if a member is missing or has the wrong type. For an identity
  /// of another protocol, reads only the protocol number.
  [[nodiscard]] static std::optional<Identity> read(const Json& json);
};

}  // namespace varve::control
