// SPDX-License-Identifier: Apache-2.0
// Which repository a path inside a mount belongs to. What a mount says of itself is a claim:
// any user can mount a FUSE file system that calls itself Varve and names another repository.
// Believed are the mount table's device number and user, which the kernel fills in, and the
// daemon behind the repository's own socket, which says what device number its mount has.
#pragma once

#include <string>
#include <vector>

#include "control/mount_table.h"
#include "varve/result.h"

namespace varve::control {

/// What a command is going to do with what a path names.
enum class Purpose {
  kLook,
  kChange,  ///< Only paths are taken whose mount the repository's daemon has confirmed.
};

/// A path inside a Varve mount.
struct MountedPath {
  MountEntry mount;
  std::string repository;     ///< Absolute path of the repository.
  std::string in_repository;  ///< SERIES/VERSION/…, also where the mount shows a part; "" for all.
};

/// Finds the mount of `path`. Symbolic links are followed, so `latest` is replaced by the
/// version's name. Waits a bounded time for a daemon that is stopped.
/// Errors: kNotFound if `path` is not in a Varve mount; kNotPermitted for a mount of another user
/// than the caller and root, and for kChange a mount that the repository's daemon does not own;
/// kStale if the daemon is dead; kBusy if it does not answer.
[[nodiscard]] Result<MountedPath> find_mounted(const std::string& path, Purpose purpose);

/// What is mounted on a directory.
struct MountedThere {
  MountEntry mount;
  std::string repository;    ///< As the mount says.
  std::int64_t process = 0;  ///< Process of the daemon, 0 if unknown.
  bool dead = false;         ///< The daemon has ended; the mount is left over.
};

/// Finds the Varve mount whose mount point `directory` is.
/// Errors: as find_mounted().
[[nodiscard]] Result<MountedThere> find_mounted_on(const std::string& directory);

/// Returns the mount points of a repository that the caller may unmount.
[[nodiscard]] Result<std::vector<MountEntry>> find_mounts_of(const std::string& repository);

}  // namespace varve::control
