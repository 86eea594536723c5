// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/json.h"
#include "control/protocol.h"
#include "control/requests.h"

namespace varve::control {

[[nodiscard]] Json store_to_json(const StoreTask& task);
/// Reads the member of a request. Returns false if it is missing or not valid.
[[nodiscard]] bool take_store(const Json& object, Request& request);
/// Adds the members `stored` and `transfer`, where the reply has them.
void put_stored(const Reply& reply, Json& object);
/// Reads these members, if they are there. Returns false if one is not valid.
[[nodiscard]] bool take_stored(const Json& object, Reply& reply);

}  // namespace varve::control
