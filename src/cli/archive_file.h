// SPDX-License-Identifier: Apache-2.0
// The output file of `varve restore --to-tar`.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::cli {

/// An archive being written. Unless finish() succeeds, the destructor removes the file that open()
/// created, so that an incomplete archive cannot be mistaken for a complete one.
class ArchiveFile {
 public:
  /// Opens what `path` names:
  /// - "-", /dev/stdout and /dev/fd/N: a descriptor that this process already has;
  /// - an existing FIFO or device;
  /// - anything else: a new file with mode 0600. `force` replaces an existing file.
  /// Never follows a symbolic link at the end of `path`.
  /// Errors: kExists, kInvalid (a terminal), kIo.
  [[nodiscard]] static Result<ArchiveFile> open(const std::string& path, bool force);

  ArchiveFile(ArchiveFile&& other) noexcept;
  ArchiveFile& operator=(ArchiveFile&&) = delete;
  ArchiveFile(const ArchiveFile&) = delete;
  ArchiveFile& operator=(const ArchiveFile&) = delete;
  ~ArchiveFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Syncs the file to disk and closes it.
  [[nodiscard]] Result<void> finish();

 private:
  ArchiveFile(std::string path, base::UniqueFd fd, bool created);

  const std::string path_;
  base::UniqueFd fd_;
  bool remove_ = false;
};

}  // namespace varve::cli
