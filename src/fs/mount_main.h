// SPDX-License-Identifier: Apache-2.0
// The commands that mount: checks, the daemon, messages.
#pragma once

#include <string>

#include "fs/mount_options.h"
#include "varve/result.h"

namespace varve::fs {

/// Mounts `repository` on `directory`. Returns when the mount is ready and a daemon serves it; in
/// the foreground, when it is unmounted. Must be called before the process starts any thread.
/// Errors: kNoRepository, kLocked, kBusy for a mount point in use, kNotFound and kNotDirectory for
/// a bad one, kUnsupported without /dev/fuse, kInvalid for conflicting options.
[[nodiscard]] Result<void> mount(const std::string& repository, const std::string& directory,
                                 const MountOptions& options);

/// Runs the mount(8) helper: `mount.fuse.varve SOURCE DIR [-sfnv] [-N NS] [-t TYPE] [-o OPTIONS]`.
/// Returns the exit code of the process.
[[nodiscard]] int mount_main(int argc, char** argv);

}  // namespace varve::fs
