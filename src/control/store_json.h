// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/json.h"
#include "control/protocol.h"
#include "control/requests.h"

namespace varve::control {

/// Returns true for a request to store a directory or a stream.
[[nodiscard]] bool is_store(const Request& request);
/// Returns the member of such a request. The descriptor of a stream is no part of it.
[[nodiscard]] Json store_to_json(const StoreTask& task);
/// Reads the member of a request. Returns false if it is missing or not valid.
[[nodiscard]] bool take_store(const Json& object, Request& request);
/// Adds the members `stored`, `all_read` and `transfer`, where the reply has them.
void put_stored(const Reply& reply, Json& object);
/// Reads these members, if they are there. Returns false if one is not valid.
[[nodiscard]] bool take_stored(const Json& object, Reply& reply);

}  // namespace varve::control
