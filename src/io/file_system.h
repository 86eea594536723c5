// SPDX-License-Identifier: Apache-2.0
// The one door to the disk below a repository. Tests put other file systems behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::io {

enum class OpenMode : std::uint8_t {
  kRead,         ///< Must exist.
  kReadPlanned,  ///< As kRead, of callers that plan their requests: nothing is read beyond them.
  kReadDirect,   ///< As kRead, past the page cache: offset, length and memory aligned to 4096.
  kReadWrite,    ///< Made if it is missing.
  kWriteDirect,  ///< Made if it is missing; aligned as kReadDirect.
  kCreateNew,    ///< kExists if it is there.
};

constexpr bool only_reads(OpenMode mode) {
  return mode == OpenMode::kRead || mode == OpenMode::kReadPlanned || mode == OpenMode::kReadDirect;
}

inline constexpr std::size_t kDirectAlignment = 4096;
/// Enough for direct access to so many bytes at any offset.
constexpr std::size_t direct_room(std::size_t bytes) {
  return (bytes + 2 * kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
}

/// An open file. Thread-safe for calls on distinct ranges.
class File {
 public:
  virtual ~File() = default;
  /// Fills `out`; fewer bytes only where the file ends.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset,
                                                    std::span<std::byte> out) = 0;
  /// Writes all of `data`.
  [[nodiscard]] virtual Result<void> write_at(std::uint64_t offset,
                                              std::span<const std::byte> data) = 0;
  /// The bytes, and the size if it changed, are on disk when it returns (fdatasync).
  [[nodiscard]] virtual Result<void> sync() = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
  [[nodiscard]] virtual Result<void> truncate(std::uint64_t bytes) = 0;
  /// As lseek(2) SEEK_DATA and SEEK_HOLE; kNotFound past the end.
  [[nodiscard]] virtual Result<std::uint64_t> seek_data(std::uint64_t offset) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> seek_hole(std::uint64_t offset) = 0;
  /// These bytes will be read soon: where that can be done, the disk fetches them meanwhile.
  virtual void will_read(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  /// Whether the page cache has all of these bytes; false also where that cannot be told.
  [[nodiscard]] virtual bool is_cached(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {
    return false;
  }
};

/// Held until it is destroyed, or its process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// Thread-safe. Paths are as the operating system takes them.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<File>> open(const std::string& path,
                                                           OpenMode mode) = 0;
  /// No error if the directory is there.
  [[nodiscard]] virtual Result<void> make_directory(const std::string& path) = 0;
  /// A file, or an empty directory. kNotFound if there is none.
  [[nodiscard]] virtual Result<void> remove(const std::string& path) = 0;
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  /// Names that were made, removed or renamed in it are on disk when it returns.
  [[nodiscard]] virtual Result<void> sync_directory(const std::string& path) = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  [[nodiscard]] virtual Result<bool> exists(const std::string& path) = 0;
  /// Bytes that the file or the tree below a directory takes (apparent sizes of files).
  [[nodiscard]] virtual Result<std::uint64_t> tree_bytes(const std::string& path) = 0;
  [[nodiscard]] virtual Result<SpaceInfo> space(const std::string& path) = 0;
  /// kLocked if another process holds it.
  [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
  /// Shares the lock with others of its kind, and neither makes nor changes the file. kNotFound
  /// without a file; kLocked while lock() holds it.
  [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> lock_shared(const std::string& path);
  /// Opens a file, checked as open() does it, for a library that reads and writes by itself.
  /// kUnsupported where files are not the kernel's.
  [[nodiscard]] virtual Result<base::UniqueFd> descriptor(const std::string& path, OpenMode mode);

  /// Whole small files: at most `bytes_max` are read (kTooLarge beyond).
  [[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
  /// As make_directory(), and its name is on disk when it returns.
  [[nodiscard]] Result<void> make_durable_directory(const std::string& path);
  /// Written beside, synced, renamed into place, directory synced.
  [[nodiscard]] Result<void> write_file_atomically(const std::string& directory,
                                                   const std::string& name,
                                                   std::span<const std::byte> data);
};

/// An Error from an errno; kNoSpace for ENOSPC and EDQUOT, kNotFound for ENOENT and so on.
[[nodiscard]] Error error_from_errno(int errno_value, const std::string& what);

}  // namespace varve::io
