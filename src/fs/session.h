// SPDX-License-Identifier: Apache-2.0
// One mount from the mount(2) call to the unmount.
#pragma once

#include <functional>
#include <string>

#include "fs/mount_options.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::fs {

/// Mounts `repository` on `directory` (an absolute path), calls `ready` when the mount stands,
/// and serves it until it is unmounted or SIGINT, SIGTERM or SIGHUP comes. Then the repository
/// is closed. Must run in the process's only thread, which becomes the loop.
[[nodiscard]] Result<void> serve_mount(Repository& repository, const std::string& directory,
                                       const MountOptions& options,
                                       const std::function<void()>& ready);

/// Blocks the signals that end a mount, in this thread and those it will start. Before any
/// thread is started, and before serve_mount().
void block_ending_signals();

}  // namespace varve::fs
