// SPDX-License-Identifier: Apache-2.0
// The output file of `varve restore --to-tar`.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::cli {

/// An archive being written. A new file gets the final name in finish(), so that an incomplete
/// archive cannot pass for a complete archive. A replaced file stays until finish(). Unless
/// finish() succeeds, the destructor removes the new file.
class ArchiveFile {
 public:
  /// Opens the output named by `path`:
  /// - "-", /dev/stdout and /dev/fd/N: an open descriptor of the calling process;
  /// - an existing FIFO or device;
  /// - any other path: a new file with mode 0600. `force` replaces an existing file.
  /// Never follows a symbolic link at the end of `path`. Creates no file in a repository, nor in
  /// `own_folders`.
  /// Errors: kExists, kInvalid (a terminal or a repository), kIo.
  [[nodiscard]] static Result<ArchiveFile> open(const std::string& path, bool force,
                                                const std::vector<std::string>& own_folders);

  ArchiveFile(ArchiveFile&& other) noexcept;
  ArchiveFile& operator=(ArchiveFile&&) = delete;
  ArchiveFile(const ArchiveFile&) = delete;
  ArchiveFile& operator=(const ArchiveFile&) = delete;
  ~ArchiveFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Syncs the file to disk, closes the file and gives the file the final name.
  /// Errors: kExists if another program has created a file of this name and `force` was not given.
  [[nodiscard]] Result<void> finish();

 private:
  ArchiveFile(std::string path, std::string temporary, base::UniqueFd fd, bool force);
  [[nodiscard]] Result<void> rename();

  const std::string path_;
  std::string temporary_;  // The new file's path until finish(); empty without a new file.
  base::UniqueFd fd_;
  const bool force_;
};

}  // namespace varve::cli
