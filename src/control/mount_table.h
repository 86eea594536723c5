// SPDX-License-Identifier: Apache-2.0
// The mount of a path, in the mount table of this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mount_table.h"

namespace varve::control {

using base::MountEntry;
using base::parse_mount_table;
using base::read_mount_table;

/// Type of a Varve mount without the option subtype=.
inline constexpr std::string_view kFileSystemType = "fuse.varve";

/// Returns the mount that contains `path` (absolute, without symbolic links) by name. Of stacked
/// mounts, returns the last. Returns null without a match.
/// Lifetime: `table` must outlive the result.
[[nodiscard]] const MountEntry* find_by_path(const std::vector<MountEntry>& table,
                                             std::string_view path);

/// Returns `path` relative to the root of the mounted file system, without a leading slash. "" is
/// the root. `mount` must contain `path`.
[[nodiscard]] std::string path_in_file_system(const MountEntry& mount, std::string_view path);

}  // namespace varve::control
