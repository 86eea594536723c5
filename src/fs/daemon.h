// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "varve/result.h"

namespace varve::fs {

/// Runs `service` in a new process without a terminal. Returns when `service` calls `ready`. If
/// `service` fails before the call, returns the error of `service`; later errors go to the system
/// log. Must be called while the process has only one thread.
[[nodiscard]] Result<void> run_as_daemon(
    const std::function<Result<void>(const std::function<void()>& ready)>& service);

}  // namespace varve::fs
