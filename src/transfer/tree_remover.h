// SPDX-License-Identifier: Apache-2.0
// Removes trees from a restore's target.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transfer/directory_stack.h"
#include "transfer/protected_folders.h"
#include "varve/result.h"

namespace varve::transfer {

/// Removes entries with everything below the entries. Keeps protected folders, mount points and
/// other file systems, and all directories above. Follows no symlink, and opens every directory
/// before removing anything inside. Not thread-safe.
class TreeRemover {
 public:
  /// Called with the path of an entry.
  using OnRemoved = std::function<void(const std::string& path)>;
  /// Called with the path of a kept entry, and with a message about the reason.
  using OnKept = std::function<void(const std::string& path, const std::string& reason)>;

  /// With `dry_run`, makes all calls but removes nothing.
  TreeRemover(const ProtectedFolders& folders, bool dry_run, OnRemoved removed, OnKept kept)
      : folders_(folders),
        dry_run_(dry_run),
        removed_(std::move(removed)),
        kept_(std::move(kept)) {}

  /// Removes an entry. `path` is the entry's path for the calls. Returns whether the whole entry is
  /// gone, or would be.
  [[nodiscard]] bool remove(int directory_fd, const std::string& name, const std::string& path);

 private:
  struct Level {
    std::vector<std::string> names;
    std::string name;
    std::size_t path_bytes = 0;
    bool is_kept = false;  // An entry of the directory stays.
  };
  enum class Step { kRemoved, kKept, kEntered };

  [[nodiscard]] Step start(int directory_fd, const std::string& name, std::size_t path_bytes);
  [[nodiscard]] Step enter(int directory_fd, const std::string& name, std::size_t path_bytes);
  [[nodiscard]] Step unlink(int directory_fd, const std::string& name, int flags);
  [[nodiscard]] Step keep(const std::string& reason);
  [[nodiscard]] Step fail(const std::string& message);

  const ProtectedFolders& folders_;
  const bool dry_run_;
  const OnRemoved removed_;
  const OnKept kept_;
  std::string path_;  // Path of the present entry.
  dev_t device_ = 0;  // Device of the directory with the entry to remove.
  DirectoryStack stack_;
  std::vector<Level> levels_;  // A level for each directory of the stack.
};

}  // namespace varve::transfer
