// SPDX-License-Identifier: Apache-2.0
// Finds where else a file system is mounted that this process has unmounted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace varve::control {

/// A mount that keeps a file system and its daemon alive.
struct MountHolder {
  std::int64_t process = 0;  ///< One that has it in its mount namespace; 0 if it is in this one.
  std::string name{};        ///< Name of the process.
  std::string mount_point{};
};

/// Looks for a mount of the file system `device` (as st_dev) in this mount namespace, then in those
/// of other processes, as far as this one may see them. Leaves out the process `daemon`, which may
/// have a namespace of its own. Returns nullopt if there is none. Source: proc(5).
[[nodiscard]] std::optional<MountHolder> find_mount_holder(dev_t device, std::int64_t daemon);

}  // namespace varve::control
