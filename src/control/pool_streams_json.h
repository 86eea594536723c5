// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "control/json.h"
#include "varve/pool_index.h"

namespace varve::control {

[[nodiscard]] Json streams_to_json(const std::vector<PoolStream>& streams);
/// Returns nothing unless `list` has streams, with all members.
[[nodiscard]] std::optional<std::vector<PoolStream>> streams_from_json(const Json& list);

}  // namespace varve::control
