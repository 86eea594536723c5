// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "control/json.h"
#include "varve/options.h"

namespace varve::control {

/// Converts the settings with a value to JSON, by the settings' names.
[[nodiscard]] Json changes_to_json(const SeriesOptions& changes);
/// Returns nullopt if `object` is no object, or has a value unknown to this program.
[[nodiscard]] std::optional<SeriesOptions> changes_from_json(const Json& object);

}  // namespace varve::control
