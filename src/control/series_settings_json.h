// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "control/json.h"
#include "varve/options.h"

namespace varve::control {

/// Converts the settings that have a value to JSON, by their names.
[[nodiscard]] Json changes_to_json(const SeriesOptions& changes);
/// Returns nothing if `object` is no object, or has a value that this program does not know.
[[nodiscard]] std::optional<SeriesOptions> changes_from_json(const Json& object);

}  // namespace varve::control
