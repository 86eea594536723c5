// SPDX-License-Identifier: Apache-2.0
// Reading a sealed version: an immutable tree whose entries are named by rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// An entry's position in tree order (depth first, names in byte order); the version's
/// root directory is 0. Stable for ever, so it serves as inode number.
using Rank = std::uint64_t;

/// One entry of a sealed tree.
struct SealedEntry {
  Rank rank = 0;
  Attributes attributes;
  /// 0, or a number that the names of one hard-linked file share inside this version.
  std::uint64_t link_group = 0;
};

/// Bytes in memory that somebody else has, and that stay as they are while `owner` is held.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// Reads one file of a sealed version. Thread-safe. Keeps the version alive.
///
/// Bytes are verified by checksum before they are returned; a damaged range gives kCorrupt
/// and the rest of the file stays readable.
class FileReader {
 public:
  virtual ~FileReader() = default;

  /// Reads at most out.size() bytes at `offset`; fewer only at the end of the file.
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t offset,
                                                 std::span<std::byte> out) = 0;

  /// As read(), but returns nullopt at once where disk or a wait would be needed.
  [[nodiscard]] virtual std::optional<std::size_t> try_read(std::uint64_t offset,
                                                            std::span<std::byte> out) = 0;

  /// Bytes from `offset` on, at most `bytes_max`, without a copy: those that are in memory, or will
  /// soon be. None (then read() tells why), or fewer than there are, may come at any time. They
  /// have to be given back before the Repository goes, and soon: nothing is lent while much is
  /// held.
  [[nodiscard]] virtual SharedBytes lend(std::uint64_t offset, std::size_t bytes_max) {
    static_cast<void>(offset);
    static_cast<void>(bytes_max);
    return {};
  }
  /// As lend(), but without a wait, and all of `bytes` up to the file's end or none.
  [[nodiscard]] virtual SharedBytes try_lend(std::uint64_t offset, std::size_t bytes) {
    static_cast<void>(offset);
    static_cast<void>(bytes);
    return {};
  }

  /// Offset of the next data (or hole) at or after `offset`, as lseek(2) SEEK_DATA and
  /// SEEK_HOLE; kNotFound (ENXIO) past the end.
  [[nodiscard]] virtual Result<std::uint64_t> seek_data(std::uint64_t offset) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> seek_hole(std::uint64_t offset) = 0;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

/// A part of a file's data that stands in one place of the disk, without a gap.
struct StoredPiece {
  /// Ascends in the order in which the data lies in the repository's files.
  std::uint64_t place = 0;
  std::uint64_t offset = 0;  ///< In the file.
  ChunkId first;
  std::uint32_t count = 0;  ///< Of chunks.
  std::uint32_t bytes = 0;
  std::uint32_t container = 0;
  std::uint32_t index = 0;  ///< Of `first` in the container.
  std::uint32_t file = 0;   ///< The caller's own.
};

/// The order in which pieces are read from the disk.
[[nodiscard]] inline bool lies_before(const StoredPiece& a, const StoredPiece& b) {
  return std::tie(a.place, a.container, a.index) < std::tie(b.place, b.container, b.index);
}

/// A sealed version. Thread-safe; lives as long as somebody holds it, but not longer than
/// the Repository it came from.
class VersionReader {
 public:
  virtual ~VersionReader() = default;

  [[nodiscard]] virtual const VersionInfo& info() const = 0;

  [[nodiscard]] virtual Result<SealedEntry> get(Rank rank) = 0;
  [[nodiscard]] virtual Result<SealedEntry> lookup(Rank directory, std::string_view name) = 0;
  /// The parent directory's rank; the root's parent is the root.
  [[nodiscard]] virtual Result<Rank> parent(Rank rank) = 0;

  /// Calls `visit` for each entry with a position > `after` (0 = from the start) in name
  /// order, until it returns false. Positions ascend and are stable for ever.
  using Visitor =
      std::function<bool(std::uint64_t position, std::string_view name, const SealedEntry&)>;
  [[nodiscard]] virtual Result<void> list(Rank directory, std::uint64_t after,
                                          const Visitor& visit) = 0;

  [[nodiscard]] virtual Result<std::string> read_link(Rank rank) = 0;
  [[nodiscard]] virtual Result<Xattrs> xattrs(Rank rank) = 0;
  [[nodiscard]] virtual Result<std::shared_ptr<FileReader>> open(Rank rank) = 0;

  /// Calls `visit` for each piece of a regular file's data from `offset` on (the end of a piece,
  /// or 0), until it returns false. Holes are no pieces. Where data lies may change while the
  /// repository is arranged, but what was visited then can only not be read any more.
  using PieceVisitor = std::function<bool(const StoredPiece&)>;
  [[nodiscard]] virtual Result<void> locate_data(Rank rank, std::uint64_t offset,
                                                 const PieceVisitor& visit) = 0;

  /// Takes bytes of a piece that belong at `offset` of its file; `data` is null if they could
  /// not be read in this way. Returns false to end the reading.
  using PieceTaker = std::function<bool(const StoredPiece& piece, std::uint64_t offset,
                                        std::size_t bytes, const std::byte* data)>;
  /// Reads pieces of any of the version's files, which must be sorted by lies_before(), in one
  /// pass over the disk: nothing is read twice, and what stands between is skipped, or read
  /// through where that is faster. The bytes are verified. Every byte is taken exactly once, those
  /// of a container in any order.
  virtual void read_pieces(std::span<const StoredPiece> pieces, const PieceTaker& take) = 0;
};

}  // namespace varve
