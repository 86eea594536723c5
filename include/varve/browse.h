// SPDX-License-Identifier: Apache-2.0
// Reads a sealed version: an immutable tree whose entries are identified by rank.
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
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// An entry's position in tree order (depth first, names in byte order); the version's root
/// directory is 0. A rank never changes, and so serves as the inode number.
using Rank = std::uint64_t;

/// An entry of a sealed tree.
struct SealedEntry {
  Rank rank = 0;
  Attributes attributes;
  /// A number shared by the names of one hard-linked file in the version; 0 = one name.
  std::uint64_t link_group = 0;
  /// For a directory with entries: a number shared by two directories of one series only if
  /// everything below is equal. Otherwise 0: nothing is known.
  std::uint64_t content_id = 0;
};

/// Bytes in memory owned by another object.
/// Lifetime: the bytes stay valid and unchanged while the caller holds `owner`.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// A range of a file to read, and the accepted ways of reading.
struct ReadRequest {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  /// Returns memory for `bytes` bytes. The reader calls `memory` at most once, just before copying.
  /// If empty, the reader does not copy.
  std::function<std::span<std::byte>(std::size_t bytes)> memory = nullptr;
  bool may_wait = true;   ///< False to read only bytes already in memory.
  bool may_lend = false;  ///< True to get bytes in memory without a copy, if possible.
};

/// Returns a request to copy to `out`, waiting as long as necessary.
[[nodiscard]] inline ReadRequest request_to_copy(std::uint64_t offset, std::span<std::byte> out) {
  return {.offset = offset, .bytes = out.size(), .memory = [out](std::size_t) { return out; }};
}

/// The answer to a ReadRequest: lent bytes, copied bytes, or neither.
struct ReadBytes {
  /// Empty if nothing is lent. If the request may wait, possibly fewer bytes than requested; the
  /// caller then requests the rest.
  SharedBytes lent;
  /// Number of copied bytes: as many as the request asks for, or fewer at the end of the file.
  std::optional<std::size_t> copied;

  [[nodiscard]] bool is_lent() const { return !lent.bytes.empty(); }
  /// Returns true if nothing was read, because reading would wait or copy against the request.
  [[nodiscard]] bool is_refused() const { return !is_lent() && !copied; }
};

/// Reads one file of a sealed version. Keeps the version alive. Thread-safe.
///
/// Verifies each byte by checksum before returning the byte. A damaged range gives kCorrupt; the
/// rest of the file stays readable.
class FileReader {
 public:
  virtual ~FileReader() = default;

  /// Reads out.size() bytes at `offset`, or fewer at the end of the file. Returns the number of
  /// bytes.
  /// Errors: kCorrupt if a byte of the range is damaged; kIo; kStale if the version was deleted.
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) {
    VARVE_TRY_ASSIGN(const ReadBytes got, read_as(request_to_copy(offset, out)));
    return got.copied.value_or(0);
  }
  /// Reads a range in the fastest way accepted by the request: lends, copies from memory, or waits
  /// and copies. A read without waiting returns all bytes of the range or none.
  /// Errors: those of read().
  /// Lifetime: release lent bytes soon, and before the Repository is destroyed. The reader lends
  /// nothing while too much memory is lent.
  [[nodiscard]] virtual Result<ReadBytes> read_as(const ReadRequest& request) = 0;

  /// Returns the offset of the next data at or after `offset`, like lseek(2) with SEEK_DATA.
  /// Errors: kPastEnd if no data follows.
  [[nodiscard]] virtual Result<std::uint64_t> seek_data(std::uint64_t offset) = 0;
  /// Returns the offset of the next hole at or after `offset`, like lseek(2) with SEEK_HOLE.
  /// Errors: kPastEnd past the end.
  [[nodiscard]] virtual Result<std::uint64_t> seek_hole(std::uint64_t offset) = 0;

  /// Returns the size of the file.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

/// A part of a file's data, contiguous on the disk.
struct StoredPiece {
  /// Position on the disk: ascends in the order of the data in the repository's files.
  std::uint64_t place = 0;
  std::uint64_t offset = 0;  ///< Offset in the file.
  ChunkId first;
  std::uint32_t count = 0;  ///< Number of chunks.
  std::uint32_t bytes = 0;
  std::uint32_t container = 0;
  std::uint32_t index = 0;  ///< Index of `first` in the container.
  std::uint32_t file = 0;   ///< For the caller's use.
};

/// A range of a file, either all data or all hole.
struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_hole = false;
};

/// A name of a file with several names.
struct LinkedName {
  Rank rank = 0;
  Rank first = 0;  ///< Rank of the first name of the same file.
};

/// A piece of one chunk of a file's data, with the chunk's fingerprint.
struct FileChunk {
  StoredPiece piece;
  Fingerprint fingerprint{};
};

/// Returns true if `a` is before `b` on the disk.
[[nodiscard]] inline bool lies_before(const StoredPiece& a, const StoredPiece& b) {
  return std::tie(a.place, a.container, a.index) < std::tie(b.place, b.container, b.index);
}

/// A sealed version. Thread-safe.
///
/// Common errors, of each function: kCorrupt if needed metadata is damaged; kNotFound if no entry
/// has the rank; kIo if the operating system reports an error.
/// Lifetime: must not outlive its Repository.
class VersionReader {
 public:
  virtual ~VersionReader() = default;

  [[nodiscard]] virtual const VersionInfo& info() const = 0;

  /// Returns the entry with a rank.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<SealedEntry> get(Rank rank) = 0;
  /// Finds a name in a directory.
  /// Errors: kNotFound if the directory has no such name; kNotDirectory.
  [[nodiscard]] virtual Result<SealedEntry> lookup(Rank directory, std::string_view name) = 0;
  /// Returns the rank of the parent directory. The root's parent is the root.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<Rank> parent(Rank rank) = 0;

  /// Called with each entry of a directory. Returns false to stop.
  using Visitor =
      std::function<bool(std::uint64_t position, std::string_view name, const SealedEntry&)>;
  /// Calls `visit` for each entry with a position > `after` (0 = from the start), in name order,
  /// until `visit` returns false. Positions ascend and never change.
  /// Errors: kNotDirectory.
  [[nodiscard]] virtual Result<void> list(Rank directory, std::uint64_t after,
                                          const Visitor& visit) = 0;

  /// Returns the target of a symlink.
  /// Errors: kInvalid if the entry is no symlink.
  [[nodiscard]] virtual Result<std::string> read_link(Rank rank) = 0;
  /// Returns the extended attributes of an entry.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<Xattrs> xattrs(Rank rank) = 0;
  /// Returns whether any entry has extended attributes, after a walk over all entries. Calls
  /// `goes_on` now and then, and returns true once `goes_on` returns false.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<bool> may_have_xattrs(const std::function<bool()>& /*goes_on*/) {
    return true;
  }
  /// Opens a regular file.
  /// Errors: kIsDirectory; kInvalid for special files and symbolic links; kStale if the version is
  /// being deleted.
  [[nodiscard]] virtual Result<std::shared_ptr<FileReader>> open(Rank rank) = 0;

  /// Called with each piece of a file. Returns false to stop.
  using PieceVisitor = std::function<bool(const StoredPiece&)>;
  /// Calls `visit` for each piece of a regular file's data from `offset` on, until `visit` returns
  /// false. `offset` is 0 or the end of a piece. Skips holes. Arranging may move data at any time:
  /// read_pieces() then passes null for the affected pieces, never wrong bytes.
  /// Errors: kInvalid if the entry is no regular file.
  [[nodiscard]] virtual Result<void> locate_data(Rank rank, std::uint64_t offset,
                                                 const PieceVisitor& visit) = 0;

  /// Takes bytes of a piece at `offset` of the piece's file. `data` is null if the bytes could not
  /// be read in one pass. Returns false to stop reading.
  using PieceTaker = std::function<bool(const StoredPiece& piece, std::uint64_t offset,
                                        std::size_t bytes, const std::byte* data)>;
  /// Reads pieces of any files of the version in one pass over the disk, each frame once. Skips the
  /// data between pieces, or reads through the data where reading is faster. `pieces` must be
  /// sorted by lies_before(). Verifies the bytes and passes every byte to `take` exactly once. The
  /// order inside a container is not defined.
  virtual void read_pieces(std::span<const StoredPiece> pieces, const PieceTaker& take) = 0;

  /// Announces that all files of the version will be read soon, by ascending rank. A version in an
  /// object store then requests the first files together, before the first read. Advice changes the
  /// time of reads, never the results.
  virtual void will_read_all() {}

  // ---- Comparing versions of one series by their stored data, for copies. ----

  /// Returns whether an entry and an entry of another version have the same attributes, extended
  /// attributes, number of names, link group and, unless both are directories, the same content.
  /// Compares content by the stored chunks: false if the chunks cannot tell. The root's name is "".
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<bool> is_same(Rank /*rank*/, VersionReader& /*other*/,
                                             Rank /*other_rank*/) {
    return false;
  }
  using RangeVisitor = std::function<bool(const FileRange&)>;
  /// Calls `visit`, in ascending order, for the ranges of a regular file that differ from the same
  /// range of an older file, until `visit` returns false. Compares stored chunks, so a range may
  /// nevertheless have equal bytes. Reads no data. `before` may be null: then all ranges differ.
  /// Errors: the common errors; kInvalid if an entry is no regular file; kUnsupported.
  [[nodiscard]] virtual Result<void> list_changes(Rank /*rank*/, VersionReader* /*before*/,
                                                  Rank /*before_rank*/,
                                                  const RangeVisitor& /*visit*/) {
    return Error(ErrorCode::kUnsupported, "this version cannot list changes");
  }
  using ChunkVisitor = std::function<bool(const FileChunk&)>;
  /// Calls `visit` for each chunk of a regular file that has a byte of [offset, offset + bytes), in
  /// ascending order, until `visit` returns false. Reads no data.
  /// Errors: as list_changes(), perhaps after some chunks were passed.
  [[nodiscard]] virtual Result<void> list_chunks(Rank /*rank*/, std::uint64_t /*offset*/,
                                                 std::uint64_t /*bytes*/,
                                                 const ChunkVisitor& /*visit*/) {
    return Error(ErrorCode::kUnsupported, "this version cannot list chunks");
  }
  /// Returns the names of all files with several names, by ascending rank. Each name takes 16
  /// bytes.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<LinkedName>> linked_names() {
    return std::vector<LinkedName>();
  }
};

}  // namespace varve
