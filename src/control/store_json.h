// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/json.h"
#include "control/protocol.h"
#include "control/requests.h"

namespace varve::control {

/// Returns true for a request to store a directory or a stream.
[[nodiscard]] bool is_store(const Request& request);
/// Returns the member for a store in a request. The descriptor of a stream is no part of the
/// member.
[[nodiscard]] Json store_to_json(const StoreTask& task);
/// Reads the member of store_to_json(). Returns false if the member is missing or not valid.
[[nodiscard]] bool take_store(const Json& object, Request& request);
/// Adds the members `stored`, `all_read` and `transfer`, where the reply has them.
void put_stored(const Reply& reply, Json& object);
/// Reads the members added by put_stored(), if present. Returns false if a member is not valid.
[[nodiscard]] bool take_stored(const Json& object, Reply& reply);

}  // namespace varve::control
