// SPDX-License-Identifier: Apache-2.0
// One change that a program made to the disk.
#pragma once

#include <cstdint>
#include <string>

namespace varve::test {

enum class CallKind : std::uint8_t {
  kCreate,
  kMakeDirectory,
  kRemove,  ///< A file or an empty directory.
  kRename,
  kWrite,
  kTruncate,
  kSync,
  kFailedSync,  ///< A failed sync, after which the kernel has dropped the file's unsynced bytes.
  kSyncDirectory,
  kNothing,  ///< A call that failed or was ignored.
};

/// One recorded call. Paths are relative to the watched folder. Files have numbers, because their
/// names change.
struct DiskCall {
  CallKind kind{};
  std::uint32_t file = 0;
  std::string path;
  std::string to;            ///< New path, for kRename.
  std::uint64_t offset = 0;  ///< Offset for kWrite; new size for kTruncate.
  std::string bytes;         ///< Written bytes, for kWrite.
  bool durable = false;      ///< True for a write that is on disk when it returns (O_DSYNC).
};

}  // namespace varve::test
