// SPDX-License-Identifier: Apache-2.0
// The mount table of this process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"

namespace varve::control {

/// Type of a Varve mount without the option subtype=.
inline constexpr std::string_view kFileSystemType = "fuse.varve";

/// One line of /proc/self/mountinfo.
struct MountEntry {
  std::int64_t id = 0;
  dev_t device = 0;        ///< Device number of the file system, as st_dev.
  std::string root = "/";  ///< Directory of the file system visible at the mount point.
  std::string mount_point;
  std::string type;
  std::string source;
  std::optional<uid_t> user;  ///< User that made a FUSE mount. No mount option can forge the user.
  bool operator==(const MountEntry&) const = default;

  [[nodiscard]] bool is_fuse() const { return type == "fuse" || type.starts_with("fuse."); }
};

/// Parses a mount table. Skips lines not in the form of proc(5).
[[nodiscard]] std::vector<MountEntry> parse_mount_table(std::string_view text);

/// Returns the mount table of this process. Empty if /proc is not mounted.
[[nodiscard]] std::vector<MountEntry> read_mount_table();

/// Returns the mount that contains `path` (absolute, without symbolic links) by name. Of stacked
/// mounts, returns the last. Returns null without a match.
/// Lifetime: `table` must outlive the result.
[[nodiscard]] const MountEntry* find_by_path(const std::vector<MountEntry>& table,
                                             std::string_view path);

/// Returns `path` relative to the root of the mounted file system, without a leading slash. "" is
/// the root. `mount` must contain `path`.
[[nodiscard]] std::string path_in_file_system(const MountEntry& mount, std::string_view path);

}  // namespace varve::control
