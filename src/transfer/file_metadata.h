// SPDX-License-Identifier: Apache-2.0
// Owner, mode, times and extended attributes of files in the user's tree.
#pragma once

#include <string>
#include <utility>

#include "transfer/problem_list.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::transfer {

/// A file of the user's tree: by descriptor, or, where it cannot be opened (symlinks, devices,
/// FIFOs, sockets), by its name in an open directory. A symlink is never followed.
struct FileRef {
  int fd = -1;
  int directory_fd = -1;
  std::string name;

  static FileRef opened(int fd) { return FileRef{fd, -1, {}}; }
  static FileRef named(int directory_fd, std::string name) {
    return FileRef{-1, directory_fd, std::move(name)};
  }
};

/// Gives a file that was just made its owner, extended attributes, mode and mtime, in the
/// order in which none undoes another. What is refused goes to `problems` under `path`.
void apply_metadata(const FileRef& file, const Attributes& attributes, const Xattrs& xattrs,
                    const std::string& path, ProblemList& problems);

/// Takes extended attributes away that are not among the wanted ones.
void remove_other_xattrs(const FileRef& file, const Xattrs& wanted);

/// All extended attributes, sorted by name; empty where the filesystem has none.
[[nodiscard]] Result<Xattrs> read_xattrs(const FileRef& file);

}  // namespace varve::transfer
