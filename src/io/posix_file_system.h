// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"

namespace varve::io {

/// Returns the kernel's file system. Accepts paths as the operating system does. For files outside
/// of repositories, and for tests.
[[nodiscard]] std::unique_ptr<FileSystem> make_posix_file_system();

struct RootOptions {
  /// True to use files and folders owned by, or writable by, other users.
  bool trust_owner = false;
  /// True to resolve paths without openat2(2), as on kernels without the call. For tests.
  bool walk_by_hand = false;
};

/// Returns the kernel's file system below one directory. `path` itself may lead through links, and
/// is opened once; every file is reached from the directory's descriptor. Paths begin with `path`;
/// the rest must not contain "..".
///
/// Below `path`, no call follows a symbolic link or crosses a mount. Unless `trust_owner` is set,
/// calls refuse a folder or file that belongs neither to the caller nor to root, or is writable by
/// other users. Calls do not write to a file with a second name (hard link).
/// Errors of all calls: kCorrupt for links and mounts, kNotPermitted for owners.
[[nodiscard]] Result<std::unique_ptr<FileSystem>> open_root(const std::string& path,
                                                            const RootOptions& options);

}  // namespace varve::io
