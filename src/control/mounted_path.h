// SPDX-License-Identifier: Apache-2.0
// Finds the repository to which a path inside a mount belongs. The mount's own attributes are only
// a claim: any user can mount a FUSE file system that calls itself Varve and names another
// repository. Varve trusts the device number and user in the mount table, which come from the
// kernel. It also trusts the daemon at the repository's own socket, which reports the device number
// of its mount.
#pragma once

#include <string>
#include <vector>

#include "control/mount_table.h"
#include "varve/result.h"

namespace varve::control {

/// The use that a command makes of a path.
enum class Purpose {
  kLook,
  kChange,  ///< Accepts a path only if the repository's daemon confirms its mount.
};

/// A path inside a Varve mount.
struct MountedPath {
  MountEntry mount;
  std::string repository;  ///< Absolute path of the repository.
  /// SERIES/VERSION/…, even if the mount shows only a part; "" for all.
  std::string in_repository;
};

/// Finds the mount of `path`. Follows symbolic links, so the result has the version's name instead
/// of `latest`. Waits only a bounded time for a stopped daemon.
/// Errors: kNotFound if `path` is not in a Varve mount; kNotPermitted if the mount belongs to
/// another user than the caller and root, or, with kChange, if the repository's daemon does not own
/// the mount; kStale if the daemon is dead; kUnavailable if the daemon does not answer.
[[nodiscard]] Result<MountedPath> find_mounted(const std::string& path, Purpose purpose);

/// A Varve mount on a directory.
struct MountedThere {
  MountEntry mount;
  std::string repository;     ///< Path of the repository, as the mount claims.
  std::int64_t process = 0;   ///< Process of the daemon, 0 if unknown.
  bool dead = false;          ///< The daemon has ended; only the mount remains.
  bool read_only = false;     ///< The daemon has opened the repository read-only.
  bool is_confirmed = false;  ///< The daemon at the repository's own socket has the mount.
};

/// Returns true if `path` is a folder with the superblock of a repository.
[[nodiscard]] bool is_repository(const std::string& path);

/// Finds the Varve mount with the mount point `directory`.
/// Errors: kInvalid if `directory` is not a mount point; otherwise as find_mounted().
[[nodiscard]] Result<MountedThere> find_mounted_on(const std::string& directory);

/// Returns the mount points of a repository that the caller may unmount.
[[nodiscard]] Result<std::vector<MountEntry>> find_mounts_of(const std::string& repository);

}  // namespace varve::control
