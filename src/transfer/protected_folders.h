// SPDX-License-Identifier: Apache-2.0
// Recognizes Varve's own folders in a tree changed by a command.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::transfer {

/// The identity of an open directory and of the directory's mount.
struct FolderIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t mount = 0;  ///< 0 before Linux 5.8.
  bool is_mount_point = false;

  /// Errors: the errors of statx(2).
  [[nodiscard]] static Result<FolderIdentity> of(int directory_fd);
};

/// Returns whether a directory with a file of the name is a repository.
[[nodiscard]] bool is_repository_name(std::string_view name);

/// Returns whether an entry that is no directory is a mount point. Mounts can hide single files.
[[nodiscard]] bool is_mounted_file(int directory_fd, const std::string& name);

/// Decides which directories of a tree a command leaves unchanged: repositories of Varve, Varve's
/// memory of repositories, mounts of repositories, and the folders named by the caller. Identifies
/// each directory by a descriptor, so links, bind mounts and renames hide nothing. Thread-safe.
class ProtectedFolders {
 public:
  /// `own`: paths of folders protected regardless of the content. Ignores missing folders.
  explicit ProtectedFolders(const std::vector<std::string>& own);

  /// Returns why a command must not change the entries of an open directory; nullopt if the change
  /// is allowed. The reason follows the word "it".
  [[nodiscard]] std::optional<std::string> reason_to_keep(int directory_fd) const;
  /// Returns why a command must not remove an open directory; nullopt if the removal is allowed.
  /// `device`: the device of the tree; a removal stays on the device.
  [[nodiscard]] std::optional<std::string> reason_not_to_remove(int directory_fd,
                                                                dev_t device) const;

  enum class Place {
    kInside,   ///< The directory may be a repository, but not lie in a repository.
    kOutside,  ///< The directory must not be a repository either.
  };
  /// Refuses a directory below a protected folder. Walks up from the descriptor, and from the root
  /// of each bind mount also in the mounted file system, if another mount shows the folders above.
  /// `path` names the directory, and `advice` ends the message.
  /// Errors: kInvalid.
  [[nodiscard]] Result<void> check_above(int directory_fd, Place place, const std::string& path,
                                         const std::string& advice) const;

  /// Refuses a directory for a restore that removes, if the directory is or is in a folder with
  /// data of a repository, also without a superblock. Walks up from the descriptor. Errors:
  /// kInvalid.
  [[nodiscard]] Result<void> check_data_above(int directory_fd, const std::string& path,
                                              const std::string& advice) const;

 private:
  using Key = std::pair<dev_t, ino_t>;
  /// As check_above(), from the directory `at`. `below_mount`: levels between the first directory
  /// and `at`, in the same mount.
  [[nodiscard]] Result<void> check_from(base::UniqueFd at, std::size_t below_mount, Place place,
                                        const std::string& path, const std::string& advice) const;
  [[nodiscard]] bool is_in_own(const FolderIdentity& folder) const;

  const std::vector<std::string> own_;
  std::set<Key> own_keys_;
  mutable std::mutex mutex_;  // Guards the member below. Innermost.
  /// All folders in the folders of `own_`. Listed when the first mount point is met, because only a
  /// mount can show an inner folder elsewhere.
  mutable std::optional<std::set<Key>> inner_keys_;
};

}  // namespace varve::transfer
