// SPDX-License-Identifier: Apache-2.0
// Finds where else a file system is mounted that this process has unmounted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/mount_table.h"

namespace varve::control {

/// A mount that keeps a file system and its daemon alive.
struct MountHolder {
  std::int64_t process = 0;  ///< One that has it in its mount namespace; 0 if it is in this one.
  std::string name{};        ///< Name of the process.
  std::string mount_point{};
};

/// Returns whether two lines of mount tables show the same file system. The device number alone
/// does not tell: once a file system has ended, the kernel gives its number to the next one.
[[nodiscard]] bool is_same_file_system(const MountEntry& one, const MountEntry& other);

/// Looks for another mount of the file system of `mount` in this mount namespace, then in those of
/// other processes, as far as this one may see them. Leaves out the process `daemon`, which may
/// have a namespace of its own. Returns nullopt if there is none. Source: proc(5).
[[nodiscard]] std::optional<MountHolder> find_mount_holder(const MountEntry& mount,
                                                           std::int64_t daemon);

}  // namespace varve::control
