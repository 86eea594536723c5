// SPDX-License-Identifier: Apache-2.0
// Reads and sets owner, mode, times and extended attributes of files in the user's tree.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "transfer/problem_list.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::transfer {

/// A file of the user's tree: a descriptor or, for a file that cannot be opened, a name in an open
/// directory. (Symlinks, devices, FIFOs and sockets cannot be opened.) Never follows a symlink.
struct FileRef {
  int fd = -1;
  int directory_fd = -1;
  std::string name;

  static FileRef opened(int fd) { return FileRef{fd, -1, {}}; }
  static FileRef named(int directory_fd, std::string name) {
    return FileRef{-1, directory_fd, std::move(name)};
  }
};

/// As `uid` or `gid`: the owner or the group stays unchanged.
inline constexpr std::uint32_t kNoOwner = 0xFFFFFFFF;

/// Sets the owner, extended attributes, mode and mtime of a new file, in an order in which no step
/// undoes another. Adds steps refused by the system to `problems`, under `path`; a refusal to give
/// files away, or to set attributes reserved for root, is only noted unless the user is root.
/// Leaves out the setuid and setgid bits of a file whose owner or group was not set; a directory
/// keeps its own setgid bit then.
void apply_metadata(const FileRef& file, const Attributes& attributes, const Xattrs& xattrs,
                    const std::string& path, ProblemList& problems);

/// Removes all extended attributes except `wanted`.
void remove_other_xattrs(const FileRef& file, const Xattrs& wanted);

/// Returns all extended attributes, sorted by name; empty if the file system supports none.
[[nodiscard]] Result<Xattrs> read_xattrs(const FileRef& file);

}  // namespace varve::transfer
