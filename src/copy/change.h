// SPDX-License-Identifier: Apache-2.0
// The changes for making a copy of a version from a copy of an earlier version, or from nothing.
//
// The sender lists the changes in tree order. Each change may be repeated: an interrupted copy
// continues with the changes after the last durable change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "varve/browse.h"
#include "varve/types.h"

namespace varve::copy {

enum class ChangeKind : std::uint8_t {
  kEnter = 1,   ///< Enters a directory.
  kLeave = 2,   ///< Returns to the parent directory.
  kRemove = 3,  ///< Removes a name, with all entries below the name.
  /// Creates an empty file of any type, in place of any file with the name. A directory stays a
  /// directory.
  kMake = 4,
  kData = 5,        ///< Writes chunks to a regular file.
  kHole = 6,        ///< Makes a range of a regular file a hole.
  kAttributes = 7,  ///< Sets size, owner, mode, time and extended attributes. The last of a file.
  kLink = 8,        ///< Makes a name a further name of a file.
};

/// A chunk of the source.
struct ChunkRef {
  std::uint32_t bytes = 0;
  Fingerprint fingerprint{};
  StoredPiece piece{};  ///< The chunk's place at the source. Not sent.
};

struct Change {
  ChangeKind kind = ChangeKind::kLeave;
  std::string name;  ///< Name in the present directory; "" = the directory itself (kAttributes).
  std::uint32_t mode = 0;  ///< Mode with the type; kMake and kAttributes have it.
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t rdev = 0;
  Timestamp mtime;
  std::uint64_t size = 0;        ///< Size of a regular file; only kAttributes.
  Xattrs xattrs;                 ///< Only kAttributes.
  std::string target;            ///< Target of a symlink; for kLink, a path from the root.
  std::uint64_t offset = 0;      ///< kData and kHole.
  std::uint64_t bytes = 0;       ///< Length of a hole.
  std::vector<ChunkRef> chunks;  ///< Chunks from `offset` on; kData.
  /// The file's rank at the source. Not sent.
  Rank rank = 0;

  /// Returns true if the change counts. Moves between directories do not.
  [[nodiscard]] bool counts() const {
    return kind != ChangeKind::kEnter && kind != ChangeKind::kLeave;
  }
};

/// Consecutive changes.
struct ChangeBatch {
  std::vector<Change> changes;
};

/// Limits of a batch. The sender ends a batch before any limit is reached.
inline constexpr std::size_t kBatchChangesMax = 8192;
inline constexpr std::size_t kBatchDataMax = 8U << 20;
inline constexpr std::size_t kBatchChunksMax = 65536;
inline constexpr std::size_t kChunkBytesMax = 131072;
inline constexpr std::size_t kLinkPathBytesMax = 1U << 20;

/// Returns whether a mode has a type of file, for example S_IFREG.
[[nodiscard]] inline bool is_type(std::uint32_t mode, std::uint32_t type) {
  constexpr std::uint32_t kTypeMask = 0170000;
  return (mode & kTypeMask) == type;
}

/// Returns the number of bytes of all chunks of a batch.
[[nodiscard]] inline std::size_t data_bytes(const ChangeBatch& batch) {
  std::size_t bytes = 0;
  for (const Change& change : batch.changes) {
    for (const ChunkRef& chunk : change.chunks) bytes += chunk.bytes;
  }
  return bytes;
}

}  // namespace varve::copy
