// SPDX-License-Identifier: Apache-2.0
// Writing an open version: a mutable tree whose files are named by inode number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"
#include "varve/version_reader.h"

namespace varve {

/// Inode number inside one open version; its root directory is 1. Stable across remounts
/// until the version is sealed.
using Ino = std::uint64_t;
inline constexpr Ino kRootIno = 1;

struct OpenEntry {
  Ino ino = 0;
  Attributes attributes;
};

/// What a new file starts with. The type is in `mode`.
struct NewFile {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t rdev = 0;
  std::string symlink_target;  ///< Only for symlinks.
  Xattrs xattrs{};             ///< Sorted by name; within the limits of set_xattr().
};

/// The members that are set are changed. A time of `now` is the caller's to fill in.
struct AttributeChange {
  std::optional<std::uint32_t> mode;  ///< Permission bits only.
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;
  std::optional<Timestamp> atime;
  std::optional<Timestamp> mtime;
};

enum class RenameMode : std::uint8_t { kReplace, kNoReplace, kExchange };
enum class XattrMode : std::uint8_t { kAny, kCreate, kReplace };

/// What fallocate(2) asks. No space is set aside: bytes that were never written are holes.
enum class AllocateMode : std::uint8_t {
  kExtend,    ///< The file grows to offset + bytes if it is shorter.
  kKeepSize,  ///< Nothing that could be seen changes.
  kPunchHole,
  kZeroRange,          ///< As kPunchHole, then kExtend.
  kZeroRangeKeepSize,  ///< As kPunchHole.
};

/// An open file of an open version, for reading and for writing. Thread-safe.
/// A file that was opened for writing counts as a writer until it is closed.
class OpenFile {
 public:
  virtual ~OpenFile() = default;  ///< Closes, and drops errors.

  [[nodiscard]] virtual Ino ino() const = 0;

  /// Takes all of `data` or fails. May wait for memory. kNoSpace when the disk is full:
  /// then nothing of `data` was taken.
  [[nodiscard]] virtual Result<void> write(std::uint64_t offset,
                                           std::span<const std::byte> data) = 0;
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t offset,
                                                 std::span<std::byte> out) = 0;
  /// As lseek(2); kNotFound (ENXIO) past the end.
  [[nodiscard]] virtual Result<std::uint64_t> seek_data(std::uint64_t offset) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> seek_hole(std::uint64_t offset) = 0;
  /// kNoSpace if the disk has less room than is asked for.
  [[nodiscard]] virtual Result<void> allocate(std::uint64_t offset, std::uint64_t bytes,
                                              AllocateMode mode) = 0;
  /// Makes [offset, offset + bytes) a copy of the source from `source_offset`, cut at the
  /// source's end; returns how many bytes that are. No data is read or written where whole
  /// chunks can be shared. kOtherVersion if nothing can be shared: copy the bytes instead.
  [[nodiscard]] virtual Result<std::uint64_t> clone_range(FileReader& source,
                                                          std::uint64_t source_offset,
                                                          std::uint64_t offset,
                                                          std::uint64_t bytes) = 0;
  /// The same from a file of this open version.
  [[nodiscard]] virtual Result<std::uint64_t> clone_range(OpenFile& source,
                                                          std::uint64_t source_offset,
                                                          std::uint64_t offset,
                                                          std::uint64_t bytes) = 0;
  /// Reports an error that asynchronous work on this file met (close(2) calls it).
  [[nodiscard]] virtual Result<void> flush() = 0;
  /// When it returns, the file's bytes and name are on disk.
  [[nodiscard]] virtual Result<void> sync() = 0;
};

/// An open version. Thread-safe.
///
/// Errors carry the code whose errno POSIX asks for (kNotFound = ENOENT and so on). Permission
/// bits are stored, not enforced: that is the caller's (the kernel's) work.
class VersionWriter {
 public:
  virtual ~VersionWriter() = default;

  [[nodiscard]] virtual VersionInfo info() const = 0;

  [[nodiscard]] virtual Result<OpenEntry> get(Ino ino) = 0;
  [[nodiscard]] virtual Result<OpenEntry> lookup(Ino directory, std::string_view name) = 0;
  [[nodiscard]] virtual Result<Ino> parent(Ino directory) = 0;

  /// Calls `visit` for each entry whose name is > `after` in byte order ("" = all), until
  /// it returns false.
  using Visitor = std::function<bool(std::string_view name, const OpenEntry&)>;
  [[nodiscard]] virtual Result<void> list(Ino directory, std::string_view after,
                                          const Visitor& visit) = 0;

  /// Makes any type of file. kExists if the name is taken.
  [[nodiscard]] virtual Result<OpenEntry> create(Ino directory, std::string_view name,
                                                 const NewFile& file) = 0;
  [[nodiscard]] virtual Result<OpenEntry> link(Ino target, Ino directory,
                                               std::string_view name) = 0;
  /// Gives a file (no directory) of a sealed version a name here: a file of its own with the
  /// same attributes and content. Names of one hard-linked file give names of one file. Data
  /// is read and written only for chunks that the version before does not have.
  /// kOtherVersion if the source is of another series.
  [[nodiscard]] virtual Result<OpenEntry> clone(VersionReader& source, Rank rank, Ino directory,
                                                std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> unlink(Ino directory, std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> remove_directory(Ino directory, std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> rename(Ino from_directory, std::string_view from_name,
                                            Ino to_directory, std::string_view to_name,
                                            RenameMode mode) = 0;

  [[nodiscard]] virtual Result<OpenEntry> set_attributes(Ino ino,
                                                         const AttributeChange& change) = 0;
  [[nodiscard]] virtual Result<std::string> read_link(Ino ino) = 0;
  [[nodiscard]] virtual Result<Xattrs> xattrs(Ino ino) = 0;
  [[nodiscard]] virtual Result<void> set_xattr(Ino ino, std::string_view name,
                                               std::string_view value, XattrMode mode) = 0;
  [[nodiscard]] virtual Result<void> remove_xattr(Ino ino, std::string_view name) = 0;

  /// Opens a regular file. A file that is unlinked while open stays readable and writable
  /// by its OpenFiles.
  [[nodiscard]] virtual Result<std::unique_ptr<OpenFile>> open(Ino ino, bool for_writing) = 0;

  /// Makes everything done so far durable.
  [[nodiscard]] virtual Result<void> sync() = 0;

  /// Number of OpenFiles that were opened for writing.
  [[nodiscard]] virtual std::size_t writers() const = 0;
};

}  // namespace varve
