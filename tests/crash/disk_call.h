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
  kFailedSync,  ///< The file's unsynced bytes are lost: the kernel has dropped them.
  kSyncDirectory,
  kNothing,  ///< Failed, or was ignored.
};

/// Paths are relative to the folder that is watched; files have numbers, since names change.
struct DiskCall {
  CallKind kind{};
  std::uint32_t file = 0;
  std::string path;
  std::string to;            ///< Of kRename.
  std::uint64_t offset = 0;  ///< Of kWrite; the new size of kTruncate.
  std::string bytes;         ///< Of kWrite.
  bool durable = false;      ///< A write that is on disk when it returns (O_DSYNC).
};

}  // namespace varve::test
