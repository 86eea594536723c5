// SPDX-License-Identifier: Apache-2.0
// Encodes times and versions in the JSON objects of the control socket.
#pragma once

#include <optional>

#include "control/json.h"
#include "varve/types.h"

namespace varve::control {

[[nodiscard]] Json time_to_json(const Timestamp& time);

/// Reads the member `name` of `object`. Returns nullopt if it is missing or of a wrong type.
[[nodiscard]] std::optional<Timestamp> time_from_json(const Json& object, const char* name);

[[nodiscard]] Json version_to_json(const VersionInfo& info);

/// Returns the version, or nullopt if a member is missing or of a wrong type.
[[nodiscard]] std::optional<VersionInfo> version_from_json(const Json& object);

}  // namespace varve::control
