// SPDX-License-Identifier: Apache-2.0
// Encodes times and versions in the JSON objects of the control socket.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "varve/types.h"

namespace varve::control {

[[nodiscard]] nlohmann::json time_to_json(const Timestamp& time);

/// Reads the member `name` of `object`. Returns nullopt if it is missing or of a wrong type.
[[nodiscard]] std::optional<Timestamp> time_from_json(const nlohmann::json& object,
                                                      const char* name);

[[nodiscard]] nlohmann::json version_to_json(const VersionInfo& info);

/// Returns the version, or nullopt if a member is missing or of a wrong type.
[[nodiscard]] std::optional<VersionInfo> version_from_json(const nlohmann::json& object);

}  // namespace varve::control
