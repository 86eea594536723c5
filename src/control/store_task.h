// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/requests.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::control {

/// Returns the task of storing a directory, with what this process is and sees.
/// Errors: kIo if the directory cannot be found.
[[nodiscard]] Result<StoreTask> store_task(const std::string& version, const StoreRequest& request);

/// Checks that this process sees the directory of a task, and may read what the command may.
/// Errors: kNotPermitted.
[[nodiscard]] Result<void> check_same_view(const StoreTask& task);

/// Checks that a stream can be read without waiting for more than its writer.
/// Errors: kInvalid unless it is a regular file or a pipe that is open for reading.
[[nodiscard]] Result<void> check_stream(const StreamSource& stream);

}  // namespace varve::control
