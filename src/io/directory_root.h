// SPDX-License-Identifier: Apache-2.0
// Resolves paths below one directory, safely even while other processes change its folders.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "io/posix_file_system.h"
#include "varve/result.h"

namespace varve::io {

/// A folder and a name in the folder: arguments for system calls with names ending in "at".
struct FolderEntry {
  base::UniqueFd owned;  ///< Owner of `folder`; empty if the root owns `folder`.
  int folder = -1;
  std::string name;
};

/// Resolves paths to folders and names. Thread-safe.
class DirectoryRoot {
 public:
  /// Accepts paths as the operating system does, and follows links in folders.
  DirectoryRoot() = default;
  /// Accepts only paths below `path`: see open_root().
  [[nodiscard]] static Result<std::unique_ptr<DirectoryRoot>> open(const std::string& path,
                                                                   const RootOptions& options);

  /// Returns the error of a failed open: advice for links and mounts, otherwise error_from_errno().
  [[nodiscard]] static Error refused(int errno_value, const std::string& path);

  [[nodiscard]] bool restricted() const { return root_.valid(); }
  /// Returns the current path of the root; nullopt without a root, or with a removed root.
  [[nodiscard]] std::optional<std::string> present_path() const;
  /// Resolves all of `path` but the last part.
  [[nodiscard]] Result<FolderEntry> entry(const std::string& path) const;
  /// Opens a directory with O_PATH.
  [[nodiscard]] Result<base::UniqueFd> directory(const std::string& path) const;
  /// Checks a file opened through entry(): see open_root().
  /// Errors: kCorrupt for anything but a regular file, and for mounts and hard links; kNotPermitted
  /// for the owner or the permissions.
  [[nodiscard]] Result<void> check_file(int fd, const std::string& path, bool for_writing) const;

 private:
  [[nodiscard]] Result<std::string> below(const std::string& path) const;
  [[nodiscard]] Result<base::UniqueFd> walk(const std::string& relative) const;
  [[nodiscard]] int open_folder(const std::string& relative) const;
  [[nodiscard]] int open_by_hand(const std::string& relative) const;
  [[nodiscard]] bool is_mounted_over(const struct statx& status) const;
  [[nodiscard]] Result<void> check_folder(int fd, const std::string& path) const;
  [[nodiscard]] Result<void> check_owner(const struct statx& status, const std::string& path) const;

  base::UniqueFd root_;
  std::string name_;
  RootOptions options_;
  struct statx root_status_ {};
  mutable std::atomic<bool> by_hand_{false};
};

}  // namespace varve::io
