// SPDX-License-Identifier: Apache-2.0
// The basic types, shared by all rooms of Varve. See docs/GLOSSARY.md.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "varve/placement.h"
#include "varve/rewrite.h"

namespace varve {

/// Number of a series inside one repository; never reused.
enum class SeriesId : std::uint32_t {};

/// A version's internal number inside its series: ascending, never reused, from 1.
enum class VersionNumber : std::uint32_t {};

/// Permanent identity of a chunk: the version that first stored it, and its ordinal there. Ids are
/// dense and ascend in ingest order, so neighbours in a file are neighbours in id.
struct ChunkId {
  std::uint64_t value = 0;

  static constexpr ChunkId make(VersionNumber birth, std::uint32_t ordinal) {
    return ChunkId{(static_cast<std::uint64_t>(birth) << 32) | ordinal};
  }
  [[nodiscard]] constexpr VersionNumber birth() const {
    return static_cast<VersionNumber>(value >> 32);
  }
  [[nodiscard]] constexpr std::uint32_t ordinal() const {
    return static_cast<std::uint32_t>(value);
  }
  [[nodiscard]] constexpr ChunkId plus(std::uint64_t n) const { return ChunkId{value + n}; }
  auto operator<=>(const ChunkId&) const = default;
};

/// SHA-256 of a chunk's raw bytes (FIPS 180-4).
using Fingerprint = std::array<std::byte, 32>;

/// Wall-clock time with nanoseconds in [0, 1e9).
struct Timestamp {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  auto operator<=>(const Timestamp&) const = default;
};

/// The attributes returned by stat(2), except device and inode number.
struct Attributes {
  std::uint32_t mode = 0;  ///< Type and permission bits, as in st_mode.
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 1;
  std::uint64_t rdev = 0;        ///< Device number of block and character devices.
  std::uint64_t size = 0;        ///< Bytes; for a symlink, the length of its target.
  std::uint64_t data_bytes = 0;  ///< Bytes outside holes; st_blocks follows from it.
  Timestamp mtime;
  Timestamp ctime;
  Timestamp atime;
};

/// One extended attribute. Name and value are stored unchanged.
struct Xattr {
  std::string name;
  std::string value;
  bool operator==(const Xattr&) const = default;
};

/// Extended attributes sorted by name; names are unique.
using Xattrs = std::vector<Xattr>;

inline constexpr std::size_t kNameBytesMax = 255;
inline constexpr std::size_t kSymlinkBytesMax = 4095;
inline constexpr std::size_t kXattrValueBytesMax = 65536;
/// Limit on the sum of all names and values of one file's extended attributes.
inline constexpr std::size_t kXattrTotalBytesMax = 262144;

/// The state of a version.
enum class VersionState : std::uint8_t { kOpen = 1, kSealed = 2 };

/// The original of a copied version, in another repository.
struct VersionOrigin {
  std::string repository;  ///< Repository::id() of the original's repository.
  SeriesId series{};
  VersionNumber number{};
  Timestamp sealed_at;
  bool whole = true;  ///< False if damaged files of the original were left out.
  bool operator==(const VersionOrigin&) const = default;
};

struct VersionInfo {
  SeriesId series{};
  VersionNumber number{};
  std::string series_name;
  std::string name;
  VersionState state = VersionState::kOpen;
  Timestamp opened_at;
  Timestamp sealed_at;              ///< Zero while open.
  std::uint64_t entries = 0;        ///< Names below the version's root.
  std::uint64_t logical_bytes = 0;  ///< Sum of file data without holes; hard links counted once.
  std::uint64_t unique_bytes = 0;   ///< Raw bytes of the chunks born in the version.
  /// Stored size of the same chunks: compressed, with container tables.
  std::uint64_t stored_bytes = 0;
  /// The time that the user gave to a sealed version, if any. Nothing verifies it, so no lock
  /// depends on it.
  std::optional<Timestamp> claimed_at{};
  /// The number, or a lower bound, of the source's files that the store of a sealed version could
  /// not store, or not unchanged; 0 for a complete version.
  std::uint64_t problems = 0;
  /// Set for a sealed version made by `varve copy`.
  std::optional<VersionOrigin> origin{};
};

struct SeriesInfo {
  SeriesId id{};
  std::string name;
  Timestamp created_at;
  Placement placement = Placement::kLineage;
  Rewrite rewrite = Rewrite::kNone;
};

/// The result of statfs(2) for the disk below the repository.
struct SpaceInfo {
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t blocks_free = 0;
  std::uint64_t blocks_available = 0;
  std::uint64_t files = 0;
  std::uint64_t files_free = 0;

  /// Returns the bytes that the caller's user may still write.
  [[nodiscard]] std::uint64_t available_bytes() const { return blocks_available * block_bytes; }
  /// Returns the size of the disk, in bytes: 0 if the disk does not tell.
  [[nodiscard]] std::uint64_t total_bytes() const { return blocks * block_bytes; }
};

/// Progress of copying a tree into or out of a repository.
struct TransferProgress {
  std::uint64_t files_done = 0;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

/// The outcome of copying a tree into or out of a repository.
struct TransferReport {
  std::uint64_t entries = 0;          ///< Entries below the top, created or already present.
  std::uint64_t unchanged = 0;        ///< Entries for files whose content was already present.
  std::uint64_t unchanged_bytes = 0;  ///< Data of the unchanged files. Only set by a store.
  std::uint64_t removed = 0;
  std::uint64_t bytes = 0;
  bool resumed = false;  ///< An interrupted restore was continued.
  /// Files that could not be read, or not restored with all metadata, each with the reason.
  std::vector<std::string> problems;
};

}  // namespace varve
