// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "varve/result.h"

namespace varve::fs {

/// Runs `service` in a new process without a terminal. Returns when `service` has called the
/// function that it is given, or with the error by which it ended before. What goes wrong
/// later stands in the system log. Must be called while the process has one thread.
[[nodiscard]] Result<void> run_as_daemon(
    const std::function<Result<void>(const std::function<void()>& ready)>& service);

}  // namespace varve::fs
