// SPDX-License-Identifier: Apache-2.0
// Which Varve mount a path belongs to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"

namespace varve::control {

inline constexpr std::string_view kFileSystemType = "fuse.varve";

/// One line of /proc/self/mountinfo.
struct MountEntry {
  std::string mount_point;
  std::string type;
  std::string source;
  bool operator==(const MountEntry&) const = default;
};

/// Lines that do not follow proc(5) are left out.
[[nodiscard]] std::vector<MountEntry> parse_mount_table(std::string_view text);

/// A path inside a Varve mount.
struct MountedPath {
  std::string mount_point;
  std::string repository;  ///< Absolute path of the repository.
  std::string relative;    ///< Below the mount point, without a slash in front; "" = its root.
};

/// The mount that `path` (absolute, without symlinks) lies in; kNotFound if that is not a
/// Varve mount. Of mounts on top of each other the last one counts.
[[nodiscard]] Result<MountedPath> find_mount_in(const std::vector<MountEntry>& table,
                                                std::string_view path);

/// The same for any path of this machine. Symlinks are followed, so `latest` is replaced by
/// the version's name. Works for the mount of a dead daemon too.
[[nodiscard]] Result<MountedPath> find_mount(const std::string& path);

/// Where a repository (an absolute path) is mounted under its own name; none if the mount table
/// cannot be read.
[[nodiscard]] std::vector<std::string> mounts_of(const std::string& repository);

/// The path below the repository's root, which is not the mount's where only a series or a
/// version is mounted. Asks the daemon.
[[nodiscard]] Result<std::string> path_in_repository(const MountedPath& path);

}  // namespace varve::control
