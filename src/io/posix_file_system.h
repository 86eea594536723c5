// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"

namespace varve::io {

/// The kernel's file system, with paths as the operating system takes them. For files outside of
/// repositories, and for tests.
[[nodiscard]] std::unique_ptr<FileSystem> make_posix_file_system();

struct RootOptions {
  /// Use files and folders though others own them or may write to them.
  bool trust_owner = false;
  /// Resolve paths without openat2(2), as on kernels that lack it. For tests.
  bool walk_by_hand = false;
};

/// The kernel's file system below one directory. `path` itself may lead through links; it is opened
/// once, and every file is reached from that descriptor. Paths begin with `path`; the rest must not
/// contain "..". Below it no symbolic link is followed and no mount is crossed; a folder or file
/// that belongs neither to the caller nor to root, or that others may write to, is refused unless
/// `trust_owner` is set; a file with a second name (hard link) is not written to.
/// Errors of all calls: kCorrupt for links and mounts, kNotPermitted for owners.
[[nodiscard]] Result<std::unique_ptr<FileSystem>> open_root(const std::string& path,
                                                            const RootOptions& options);

}  // namespace varve::io
