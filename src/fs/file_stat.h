// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/types.h"

namespace varve::fs {

/// The owner, permissions and rights shown by a mount in place of the stored values.
struct ShowOptions {
  std::optional<std::uint32_t> uid;    ///< Owner of all files; nullopt = the stored owner.
  std::optional<std::uint32_t> gid;    ///< Group of all files; nullopt = the stored group.
  std::optional<std::uint32_t> umask;  ///< Permission bits removed from all files but links.
  /// Owner of the root, of series and of `latest`.
  std::uint32_t owner_uid = 0;
  std::uint32_t owner_gid = 0;
  bool rmdir_deletes = false;  ///< rmdir(2) deletes sealed versions.
  /// Removing all names of a sealed version, and the version's directory, deletes the version. The
  /// value is the number of seconds without a removal after which the names return. nullopt: sealed
  /// versions refuse removals.
  std::optional<std::uint32_t> rm_deletes_s;
  /// Programs may keep files beside versions, and folders whose names match a pattern of
  /// fnmatch(3).
  std::optional<std::vector<std::string>> beside{};
  /// The kernel enforces permission bits and access control lists.
  bool permissions_checked = false;
};

/// Returns the attributes of a file in the form of stat(2).
[[nodiscard]] struct stat make_stat(const Attributes& attributes, std::uint64_t st_ino,
                                    const ShowOptions& show);

[[nodiscard]] inline timespec to_timespec(const Timestamp& time) {
  return {.tv_sec = time.seconds, .tv_nsec = static_cast<long>(time.nanoseconds)};
}
[[nodiscard]] inline Timestamp to_timestamp(const timespec& time) {
  return {.seconds = time.tv_sec, .nanoseconds = static_cast<std::uint32_t>(time.tv_nsec)};
}

}  // namespace varve::fs
