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

/// Copies the data of files from the source into an open version. Not thread-safe.
class DataImporter {
 public:
  /// Called with the number of bytes after each piece. Returns false to interrupt.
  using Advance = std::function<bool(std::uint64_t bytes)>;

  /// Lifetime: `version` and `errors` must outlive this object.
  DataImporter(VersionWriter& version, VersionErrors& errors, Advance advance);

  /// Stores the data of the open file `fd` in the empty file `ino`.
  /// Errors: kInterrupted; those of the version, and of reading.
  [[nodiscard]] Result<void> store(int fd, const struct stat& status, Ino ino);

 private:
  [[nodiscard]] Result<void> store_range(int fd, OpenFile& file, std::uint64_t begin,
                                         std::uint64_t& end);

  VersionWriter& version_;
  VersionErrors& errors_;
  const Advance advance_;
  std::vector<std::byte> buffer_;
};

}  // namespace varve::transfer
