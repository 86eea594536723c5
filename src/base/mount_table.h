// SPDX-License-Identifier: Apache-2.0
// The mount table of the calling process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::base {

/// A line of /proc/self/mountinfo.
struct MountEntry {
  std::int64_t id = 0;
  dev_t device = 0;        ///< Device number of the file system, as st_dev.
  std::string root = "/";  ///< Directory of the file system visible at the mount point.
  std::string mount_point;
  std::string type;
  std::string source;
  std::optional<uid_t> user;  ///< Maker of a FUSE mount. No mount option can forge the user.
  bool operator==(const MountEntry&) const = default;

  [[nodiscard]] bool is_fuse() const { return type == "fuse" || type.starts_with("fuse."); }
};

/// Parses a mount table. Skips lines not in the form of proc(5).
[[nodiscard]] std::vector<MountEntry> parse_mount_table(std::string_view text);

/// Returns the mount table of the calling process. Empty if /proc is not mounted.
[[nodiscard]] std::vector<MountEntry> read_mount_table();

}  // namespace varve::base
