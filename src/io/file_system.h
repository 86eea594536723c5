// SPDX-License-Identifier: Apache-2.0
// The interface for all access to the disk below a repository. Tests use other implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::io {

enum class OpenMode : std::uint8_t {
  kRead,         ///< Read only; the file must exist.
  kReadPlanned,  ///< As kRead, for planned requests: no further read-ahead.
  kReadDirect,   ///< As kRead, past the page cache: offset, length and memory aligned to 4096.
  kReadWrite,    ///< Read and write; creates a missing file.
  kWriteDirect,  ///< As kReadWrite, past the page cache: aligned as for kReadDirect.
  kCreateNew,    ///< As kReadWrite for a new file; kExists for an existing file.
};

constexpr bool only_reads(OpenMode mode) {
  return mode == OpenMode::kRead || mode == OpenMode::kReadPlanned || mode == OpenMode::kReadDirect;
}

inline constexpr std::size_t kDirectAlignment = 4096;
/// Returns whether direct access accepts `n` as an offset, a length or an address.
constexpr bool is_aligned(std::uint64_t n) { return n % kDirectAlignment == 0; }
/// Returns the buffer size for direct access to `bytes` bytes at any offset.
constexpr std::size_t direct_room(std::size_t bytes) {
  return (bytes + 2 * kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
}

/// An open file. Thread-safe for calls on distinct ranges.
class File {
 public:
  virtual ~File() = default;
  /// Fills `out`. Returns fewer bytes only at the end of the file.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset,
                                                    std::span<std::byte> out) = 0;
  /// Writes all of `data`.
  [[nodiscard]] virtual Result<void> write_at(std::uint64_t offset,
                                              std::span<const std::byte> data) = 0;
  /// Waits until the bytes, and the size if it changed, are on disk (fdatasync).
  [[nodiscard]] virtual Result<void> sync() = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
  [[nodiscard]] virtual Result<void> truncate(std::uint64_t bytes) = 0;
  /// Return an offset as lseek(2) with SEEK_DATA and SEEK_HOLE. Errors: kPastEnd.
  [[nodiscard]] virtual Result<std::uint64_t> seek_data(std::uint64_t offset) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> seek_hole(std::uint64_t offset) = 0;
  /// Announces that the caller will read a range soon. The kernel may prefetch the range.
  virtual void will_read(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  /// Returns whether the page cache has the whole range. Returns false also if the kernel cannot
  /// tell.
  [[nodiscard]] virtual bool is_cached(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {
    return false;
  }
  /// Returns the unit of writing: a write to one byte of a unit writes the whole unit again. A
  /// writer that must not endanger synced bytes begins at next_append(). A power of two.
  [[nodiscard]] virtual std::uint64_t append_unit() { return 1; }
  /// Returns the start of the next append in a file whose bytes end at `end`. The bytes in between
  /// are never written, and read as zeros.
  [[nodiscard]] std::uint64_t next_append(std::uint64_t end) {
    const auto unit = append_unit();
    return (end + unit - 1) / unit * unit;
  }
};

/// A lock on a file, held until the object is destroyed or its process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// Access to files and directories. Thread-safe. Accepts paths as the operating system does.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<File>> open(const std::string& path,
                                                           OpenMode mode) = 0;
  /// Creates a directory. An existing directory is no error.
  [[nodiscard]] virtual Result<void> make_directory(const std::string& path) = 0;
  /// Removes a file or an empty directory. Errors: kNotFound if `path` does not exist.
  [[nodiscard]] virtual Result<void> remove(const std::string& path) = 0;
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  /// Waits until all created, removed and renamed names in the directory are on disk.
  [[nodiscard]] virtual Result<void> sync_directory(const std::string& path) = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  [[nodiscard]] virtual Result<bool> exists(const std::string& path) = 0;
  /// Returns the bytes of the file, or of the tree below a directory (apparent sizes of files).
  [[nodiscard]] virtual Result<std::uint64_t> tree_bytes(const std::string& path) = 0;
  /// Returns the size on disk of a file at `path` with `bytes` bytes; by default `bytes`.
  [[nodiscard]] virtual std::uint64_t stored_bytes(const std::string& /*path*/,
                                                   std::uint64_t bytes) {
    return bytes;
  }
  [[nodiscard]] virtual Result<SpaceInfo> space(const std::string& path) = 0;
  /// Locks a file, and creates it if needed. Errors: kLocked if another process holds the lock.
  [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
  /// Shares the lock with other callers of lock_shared(). Neither creates nor changes the file.
  /// Errors: kNotFound without a file; kLocked while lock() holds the lock.
  [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> lock_shared(const std::string& path);
  /// Opens a file with the checks of open(), for a library with its own reads and writes.
  /// Errors: kUnsupported if the files are not in a file system of the kernel.
  [[nodiscard]] virtual Result<base::UniqueFd> descriptor(const std::string& path, OpenMode mode);
  /// Returns the current path of the folder opened by open_root(), which may have been moved;
  /// nullopt if the path is unknown or the folder was removed.
  [[nodiscard]] virtual std::optional<std::string> root_path() { return std::nullopt; }

  /// Reads a whole small file. Errors: kTooLarge for a file of more than `bytes_max` bytes.
  [[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
  /// Creates a directory as make_directory() does, and waits until the directory's name is on disk.
  [[nodiscard]] Result<void> make_durable_directory(const std::string& path);
  /// Writes a temporary file in `directory`, syncs the file, renames the file to `name`, and syncs
  /// the directory.
  [[nodiscard]] Result<void> write_file_atomically(const std::string& directory,
                                                   const std::string& name,
                                                   std::span<const std::byte> data);
};

/// Reads bytes as File::read_at() does. Damaged append units read as zeros: a log has separate
/// checksums, and a crash leaves a damaged end. Errors: errors of read_at(), except kCorrupt.
[[nodiscard]] Result<std::string> read_despite_damage(File& file, std::uint64_t offset,
                                                      std::size_t bytes);

/// Returns base::system_error() with advice to the user about the repository's disk.
[[nodiscard]] Error error_from_errno(int errno_value, const std::string& what);

}  // namespace varve::io
