// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/requests.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::control {

/// Returns the task of storing a directory, with the user, the mount namespace and the directory's
/// identity as the calling process sees them.
/// Errors: kIo if the directory cannot be found.
[[nodiscard]] Result<StoreTask> store_task(const std::string& version, const StoreRequest& request);

/// Checks that the calling process sees the same directory as the command, and may read all files
/// readable by the command.
/// Errors: kLocked, because the command has to wait for the end of the process.
[[nodiscard]] Result<void> check_same_view(const StoreTask& task);

/// Checks that only the stream's writer can delay a read of the stream.
/// Errors: kInvalid unless the stream is a regular file or a pipe, open for reading.
[[nodiscard]] Result<void> check_stream(const StreamSource& stream);

}  // namespace varve::control
