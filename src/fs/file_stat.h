// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/types.h"

namespace varve::fs {

/// The owner, permissions and rights that a mount shows, in place of those in the repository.
struct ShowOptions {
  std::optional<std::uint32_t> uid;    ///< Owner of all files; nullopt = the stored one.
  std::optional<std::uint32_t> gid;    ///< Group of all files; nullopt = the stored one.
  std::optional<std::uint32_t> umask;  ///< Permission bits removed from all files but links.
  /// Owner of the root, of series and of `latest`.
  std::uint32_t owner_uid = 0;
  std::uint32_t owner_gid = 0;
  bool rmdir_deletes = false;  ///< rmdir(2) of a sealed version deletes it.
  /// Removing all names of a sealed version, and its directory, deletes it. After so many seconds
  /// without a removal the names return. nullopt: sealed versions refuse removals.
  std::optional<std::uint32_t> rm_deletes_s;
  /// Programs may keep files beside versions, and folders whose names match a pattern of
  /// fnmatch(3).
  std::optional<std::vector<std::string>> beside{};
  /// The kernel enforces permission bits and access control lists.
  bool permissions_checked = false;
};

/// Returns the attributes of a file as stat(2) shows them.
[[nodiscard]] struct stat make_stat(const Attributes& attributes, std::uint64_t st_ino,
                                    const ShowOptions& show);

[[nodiscard]] inline timespec to_timespec(const Timestamp& time) {
  return {.tv_sec = time.seconds, .tv_nsec = static_cast<long>(time.nanoseconds)};
}
[[nodiscard]] inline Timestamp to_timestamp(const timespec& time) {
  return {.seconds = time.tv_sec, .nanoseconds = static_cast<std::uint32_t>(time.tv_nsec)};
}

}  // namespace varve::fs
