// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "control/repository_control.h"
#include "control/server.h"

namespace varve::control {

/// Adds a handler for each request, which calls the same function of `control`. `control` must be
/// thread-safe. The handlers share ownership of `control`.
void add_handlers(const std::shared_ptr<RepositoryControl>& control, Handlers& handlers);

}  // namespace varve::control
