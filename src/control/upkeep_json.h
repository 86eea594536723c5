// SPDX-License-Identifier: Apache-2.0
// The JSON form of the defaults of arranging and pruning, on the control socket.
#pragma once

#include <optional>

#include "control/json_fields.h"
#include "varve/upkeep.h"

namespace varve::control {

template <>
struct JsonOf<UpkeepSettings> {
  [[nodiscard]] static Json write(const UpkeepSettings& settings);
  [[nodiscard]] static std::optional<UpkeepSettings> read(const Json& json);
};

}  // namespace varve::control
