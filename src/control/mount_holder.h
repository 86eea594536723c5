// SPDX-License-Identifier: Apache-2.0
// Finds the remaining mounts of a file system after an unmount by this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/mount_table.h"

namespace varve::control {

/// A mount that keeps a file system and its daemon alive.
struct MountHolder {
  std::int64_t process = 0;  ///< A process of the mount's namespace; 0 for the caller's own.
  std::string name{};        ///< Name of the process.
  std::string mount_point{};
};

/// Returns whether two entries of mount tables show the same file system. Compares more than the
/// device number: after the end of a file system, the kernel gives the number to a new file system.
[[nodiscard]] bool is_same_file_system(const MountEntry& one, const MountEntry& other);

/// Returns another mount of the file system of `mount`: in the caller's mount namespace, then in
/// the namespaces of other processes visible to the caller. Leaves out the process `daemon`,
/// because a daemon may have a private namespace. Returns nullopt if there is no such mount.
/// Source: proc(5).
[[nodiscard]] std::optional<MountHolder> find_mount_holder(const MountEntry& mount,
                                                           std::int64_t daemon);

}  // namespace varve::control
