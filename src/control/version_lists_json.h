// SPDX-License-Identifier: Apache-2.0
// Encodes lists of versions in the JSON objects of the control socket.
#pragma once

#include <optional>
#include <vector>

#include "control/json.h"
#include "varve/options.h"
#include "varve/retention.h"
#include "varve/types.h"

namespace varve::control {

[[nodiscard]] Json version_numbers_to_json(const std::vector<VersionNumber>& numbers);
[[nodiscard]] Json version_keys_to_json(const std::vector<VersionKey>& versions);
[[nodiscard]] Json held_to_json(const std::vector<HeldVersion>& held);

/// Reads the member `versions`, a list of numbers. Returns nullopt if the member is missing or of a
/// wrong type.
[[nodiscard]] std::optional<std::vector<VersionNumber>> version_numbers_from(const Json& object);
/// Reads a list of versions of any series. Returns nullopt for a wrong type.
[[nodiscard]] std::optional<std::vector<VersionKey>> version_keys_from(const Json& list);
/// Reads a list of results of version_to_json(). Returns nullopt for a wrong type.
[[nodiscard]] std::optional<std::vector<VersionInfo>> versions_from(const Json& list);
/// Reads the member `held`. Returns nullopt if the member is missing or of a wrong type.
[[nodiscard]] std::optional<std::vector<HeldVersion>> held_from(const Json& object);

}  // namespace varve::control
