// SPDX-License-Identifier: Apache-2.0
// The JSON form of requests to store a directory or a stream.
#pragma once

#include <optional>

#include "control/json.h"
#include "control/requests.h"

namespace varve::control {

/// Returns true for kStore and kStoreStream.
[[nodiscard]] bool is_store(const Request& request);

[[nodiscard]] Json store_to_json(const StoreTask& task);
/// Returns nullopt if `json` is no result of store_to_json() for a directory or, with `is_stream`,
/// for a stream.
[[nodiscard]] std::optional<StoreTask> store_from_json(const Json& json, bool is_stream);

}  // namespace varve::control
