// SPDX-License-Identifier: Apache-2.0
// Serves a mount, from mount(2) to the unmount.
#pragma once

#include <functional>
#include <string>

#include "fs/mount_options.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::fs {

/// Mounts `repository` on `directory` (an absolute path) and calls `ready`. Serves the mount until
/// an unmount, or until the process gets SIGINT, SIGTERM or SIGHUP, then closes the repository.
/// Must run in the only thread of the process.
/// Errors: kNotFound for a missing series or version in `options`; kInvalid for options rejected by
/// FUSE; kIo if the mount fails; the errors of Repository::close().
[[nodiscard]] Result<void> serve_mount(Repository& repository, const std::string& directory,
                                       const MountOptions& options,
                                       const std::function<void()>& ready);

/// Blocks the signals for ending a mount, in the calling thread and in all threads started later by
/// the calling thread. Must be called before the first thread starts and before serve_mount().
void block_ending_signals();
/// Returns whether an ending signal is pending.
[[nodiscard]] bool ending_signal_waits();

}  // namespace varve::fs
