// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "transfer/version_errors.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::transfer {

/// Limit for files with content but with a stated size of 0, for example files of /proc.
inline constexpr std::uint64_t kUnsizedBytesMax = std::uint64_t{1} << 30;

/// Copies the data of files from the source into an open version. Not thread-safe.
class DataImporter {
 public:
  /// Called with the number of bytes after each piece. Returns false to interrupt.
  using Advance = std::function<bool(std::uint64_t bytes)>;

  /// Lifetime: `version` and `errors` must outlive the object.
  DataImporter(VersionWriter& version, VersionErrors& errors, Advance advance,
               std::uint64_t unsized_bytes_max = kUnsizedBytesMax);

  /// Stores the data of `fd`, opened with O_NONBLOCK and not read yet, in the empty file `ino`.
  /// Reads a file with a size of 0 up to the end: the files of /proc and of some FUSE file systems
  /// state no size.
  /// Errors: kInterrupted; kInvalid for a file with a size of 0 but without an end; the errors of
  /// the version, and of reading.
  [[nodiscard]] Result<void> store(int fd, const struct stat& status, Ino ino);

 private:
  [[nodiscard]] Result<void> store_unsized(int fd, Ino ino);
  [[nodiscard]] Result<void> store_range(int fd, OpenFile& file, std::uint64_t begin,
                                         std::uint64_t& end);

  VersionWriter& version_;
  VersionErrors& errors_;
  const Advance advance_;
  const std::uint64_t unsized_bytes_max_;
  std::vector<std::byte> buffer_;
};

}  // namespace varve::transfer
