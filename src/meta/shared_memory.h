// SPDX-License-Identifier: Apache-2.0
// Files in memory mapped by several processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::meta {

/// A folder of the machine in which each user may have a folder for shared files.
struct MemoryPlace {
  std::string path;
  uid_t owner = 0;  ///< Required owner of `path`.
};

/// Returns the places for the files of `user`, the preferred place first: /dev/shm, /run and
/// /run/user/UID. The choice must not depend on environment variables, because all processes that
/// use a repository must find the same file.
[[nodiscard]] std::vector<MemoryPlace> memory_places(uid_t user);

/// A file in memory. All of the file's space is allocated, so a full tmpfs is an error of open()
/// instead of a SIGBUS of the process that maps the file.
class SharedFile {
 public:
  /// Opens or creates the file PLACE/varve-USER/NAME of `bytes` bytes. Selects the first place that
  /// has the file, else the first place that can take the file. Only `user` and root may enter the
  /// folder. open() follows no link, and checks owner, mode and file system. Root may open the
  /// files of each user, and creates files with the user as owner.
  /// Errors: kUnsupported if no place can be used; the message says why.
  [[nodiscard]] static Result<SharedFile> open(const std::vector<MemoryPlace>& places, uid_t user,
                                               const std::string& name, std::uint64_t bytes);
  /// Creates a file invisible to other processes.
  [[nodiscard]] static Result<SharedFile> make_private(std::uint64_t bytes);

  [[nodiscard]] int descriptor() const { return file_.get(); }
  /// Returns the descriptor of the file's folder, or -1 for a private file.
  [[nodiscard]] int folder() const { return folder_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns whether open() created the file.
  [[nodiscard]] bool is_new() const { return is_new_; }
  [[nodiscard]] bool is_private() const { return !folder_.valid(); }
  /// Returns whether the file still has its name. False for a private file.
  [[nodiscard]] bool has_its_name() const;
  /// Removes the name if the name still belongs to the file.
  void remove_name() const;

 private:
  SharedFile(base::UniqueFd file, base::UniqueFd folder, std::string name, bool is_new)
      : file_(std::move(file)),
        folder_(std::move(folder)),
        name_(std::move(name)),
        is_new_(is_new) {}

  base::UniqueFd file_;
  base::UniqueFd folder_;
  std::string name_;
  bool is_new_ = false;
};

}  // namespace varve::meta
