// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "transfer/file_metadata.h"
#include "transfer/problem_list.h"
#include "transfer/version_errors.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::transfer {

/// Returns a time of stat(2).
inline Timestamp time_of(const struct timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

/// Copies the metadata of files from the source into an open version. Not thread-safe.
class MetadataImporter {
 public:
  /// Lifetime: every argument must outlive the object.
  MetadataImporter(VersionWriter& version, VersionErrors& errors, ProblemList& problems)
      : version_(version), errors_(errors), problem_list_(problems) {}

  /// Sets extended attributes and all further metadata of a new file. Must be called after the data
  /// was written, because a write changes the mtime and clears the setuid bit. `path` is for
  /// messages. Adds attributes refused by the source's file system to the list of problems.
  /// Errors: the errors of the version.
  [[nodiscard]] Result<void> set(const FileRef& file, Ino ino, const struct stat& status,
                                 const std::string& path);
  /// Does the same for a directory already in the version. Changes only differing metadata.
  [[nodiscard]] Result<void> adjust(const FileRef& file, Ino ino, const struct stat& status,
                                    const std::string& path);
  /// Returns the number of problems so far.
  [[nodiscard]] std::uint64_t problems() const { return problem_count_; }

 private:
  [[nodiscard]] Xattrs source_xattrs(const FileRef& file, Ino ino, const std::string& path);
  [[nodiscard]] Result<void> set_xattrs(Ino ino, const Xattrs& xattrs, const std::string& path);
  [[nodiscard]] Result<void> set_attributes(Ino ino, const struct stat& status);

  VersionWriter& version_;
  VersionErrors& errors_;
  ProblemList& problem_list_;
  std::uint64_t problem_count_ = 0;
};

}  // namespace varve::transfer
