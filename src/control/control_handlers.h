// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "control/repository_control.h"
#include "control/server.h"

namespace varve::control {

/// Adds handlers that answer each request with the same function of `control`, which must be
/// thread-safe. The handlers share its ownership.
void add_handlers(const std::shared_ptr<RepositoryControl>& control, Handlers& handlers);

}  // namespace varve::control
