// SPDX-License-Identifier: Apache-2.0
// Mounting as a command does it: checks, daemon, messages.
#pragma once

#include <string>

#include "fs/mount_options.h"
#include "varve/result.h"

namespace varve::fs {

/// Mounts `repository` on `directory`. Unless it stays in the foreground, it returns as soon
/// as the mount stands, and a daemon goes on; else when it was unmounted. Must be called
/// before the process has started any thread.
[[nodiscard]] Result<void> mount(const std::string& repository, const std::string& directory,
                                 const MountOptions& options);

/// The mount(8) helper: `mount.fuse.varve SOURCE DIR [-sfnv] [-N NS] [-t TYPE] [-o OPTIONS]`.
/// Returns the process's exit code.
[[nodiscard]] int mount_main(int argc, char** argv);

}  // namespace varve::fs
