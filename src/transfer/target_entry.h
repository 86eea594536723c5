// SPDX-License-Identifier: Apache-2.0
// Examines the existing entries of a restore's target. Names each entry in an open
// directory, and never follows the last component.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include "varve/browse.h"
#include "varve/result.h"

namespace varve::transfer {

/// The flags with which a folder is opened: a link in its place is an error.
inline constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Opens a file with openat2(2), without leaving the directory or following a symlink. `name` has
/// one component or several. Returns -1 and sets errno as openat(2) does.
[[nodiscard]] int open_beneath(int directory_fd, const char* name, int flags);

/// Does the same without crossing a mount point: then errno is EXDEV.
[[nodiscard]] int open_in_same_mount(int directory_fd, const char* name, int flags);

/// Returns the status of an entry, or nullopt if the name does not exist.
[[nodiscard]] Result<std::optional<struct stat>> stat_entry(int directory_fd,
                                                            const std::string& name);

/// Returns whether a regular file has the same bytes as `source` from `begin` up to `end`. Returns
/// false also if either cannot be read. Calls `advance` with the length of each piece; it returns
/// false to stop (kInterrupted).
[[nodiscard]] Result<bool> same_content(FileReader& source, int fd, std::uint64_t begin,
                                        std::uint64_t end,
                                        const std::function<bool(std::uint64_t)>& advance);

}  // namespace varve::transfer
