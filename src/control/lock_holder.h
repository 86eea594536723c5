// SPDX-License-Identifier: Apache-2.0
// Finds the holder of a file lock. The kernel lists locks in /proc/locks.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace varve::control {

/// An exclusive flock(2) of a process of this pid namespace.
struct ListedLock {
  pid_t process = 0;
  unsigned device_major = 0;
  unsigned device_minor = 0;
  ino_t inode = 0;
  bool operator==(const ListedLock&) const = default;
};

/// Returns the exclusive locks of flock(2) in the text of /proc/locks. Leaves out processes that
/// only wait for a lock. Source: proc(5).
[[nodiscard]] std::vector<ListedLock> parse_locks(std::string_view text);

/// Returns "process 42 (varve store /srv/backup a/1 /home)" for the process that has locked the
/// file; "" if the holder is invisible to the calling process.
[[nodiscard]] std::string holder_of_lock(const std::string& path);

}  // namespace varve::control
