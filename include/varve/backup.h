// SPDX-License-Identifier: Apache-2.0
// Writes versions: an open version is a mutable tree whose files are identified by inode number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "varve/browse.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

class RankTable;
class RemovedFiles;  // varve/mount.h
class Repository;

/// Inode number inside one open version; the root directory is 1. Stays the same across remounts,
/// until the version is sealed.
using Ino = std::uint64_t;
inline constexpr Ino kRootIno = 1;

struct OpenEntry {
  Ino ino = 0;
  Attributes attributes;
  /// True if the file is unchanged since the version was cloned. The file's rank in the cloned
  /// version is then `ino` - 1, or, for a file with several names, the rank of the first name.
  bool as_in_base = false;
};

/// The initial state of a new file. `mode` includes the file type.
struct NewFile {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t rdev = 0;
  std::string symlink_target;  ///< Only for symlinks.
  Xattrs xattrs{};             ///< Sorted by name, within the limits of set_xattr().
};

/// New values for the attributes to change; nullopt leaves an attribute unchanged. For a time of
/// "now", the caller fills in the present time.
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

/// The modes of fallocate(2). No mode reserves space: bytes that were never written are holes.
enum class AllocateMode : std::uint8_t {
  kExtend,    ///< Extends the file to offset + bytes if it is shorter.
  kKeepSize,  ///< Changes nothing visible to a program.
  kPunchHole,
  kZeroRange,          ///< Does kPunchHole, then kExtend.
  kZeroRangeKeepSize,  ///< Same as kPunchHole.
};

/// An open file of an open version, for reading and writing. Thread-safe. A file opened for writing
/// counts as a writer until the OpenFile is closed.
class OpenFile {
 public:
  virtual ~OpenFile() = default;  ///< Closes the file and drops errors.

  [[nodiscard]] virtual Ino ino() const = 0;

  /// Writes all of `data` or fails. May wait for memory.
  /// Errors: kNoSpace if the disk is full; then none of `data` was written. kBadHandle if the file
  /// was opened only for reading.
  [[nodiscard]] virtual Result<void> write(std::uint64_t offset,
                                           std::span<const std::byte> data) = 0;
  /// Reads out.size() bytes at `offset`, or fewer at the end of the file. Returns the number of
  /// bytes.
  /// Errors: kCorrupt or kIo if stored bytes cannot be read.
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t offset,
                                                 std::span<std::byte> out) = 0;
  /// Returns the offset of the next data at or after `offset`, like lseek(2) with SEEK_DATA.
  /// Errors: kPastEnd if no data follows.
  [[nodiscard]] virtual Result<std::uint64_t> seek_data(std::uint64_t offset) = 0;
  /// Returns the offset of the next hole at or after `offset`, like lseek(2) with SEEK_HOLE.
  /// Errors: kPastEnd past the end.
  [[nodiscard]] virtual Result<std::uint64_t> seek_hole(std::uint64_t offset) = 0;
  /// Changes a range as fallocate(2) does.
  /// Errors: kNoSpace if the disk has less space than requested.
  [[nodiscard]] virtual Result<void> allocate(std::uint64_t offset, std::uint64_t bytes,
                                              AllocateMode mode) = 0;
  /// Makes [offset, offset + bytes) a copy of the source from `source_offset` on, up to the
  /// source's end. Returns the number of copied bytes. Shares whole chunks where possible, without
  /// reading or writing data.
  /// Errors: kOtherVersion if nothing can be shared; the caller then copies the bytes.
  [[nodiscard]] virtual Result<std::uint64_t> clone_range(FileReader& source,
                                                          std::uint64_t source_offset,
                                                          std::uint64_t offset,
                                                          std::uint64_t bytes) = 0;
  /// Does the same with a source in the same open version.
  /// Errors: as above.
  [[nodiscard]] virtual Result<std::uint64_t> clone_range(OpenFile& source,
                                                          std::uint64_t source_offset,
                                                          std::uint64_t offset,
                                                          std::uint64_t bytes) = 0;
  /// Returns the error that stopped storing the version's data, if any. Call flush() on close(2).
  /// Does not wait, and promises no durability.
  /// Errors: kNoSpace, kIo.
  [[nodiscard]] virtual Result<void> flush() = 0;
  /// Makes the file's bytes, attributes and name durable.
  /// Errors: kNoSpace, kIo.
  [[nodiscard]] virtual Result<void> sync() = 0;
};

/// A chunk to read by its fingerprint.
struct WantedChunk {
  Fingerprint fingerprint{};
  std::span<std::byte> bytes;  ///< Memory for the chunk, of exactly the chunk's length.
};

/// The stored chunks considered by VersionWriter::read_known().
enum class KnownChunks : std::uint8_t {
  kAll = 0,       ///< Chunks of the series, and chunks of the pool shared by all series.
  kOfSeries = 1,  ///< Chunks in the store of the series.
};

/// An open version. Thread-safe. Stores permission bits but does not enforce them: the caller, or
/// the kernel, does.
///
/// Errors have the code for the errno required by POSIX (kNotFound = ENOENT and so on). Common
/// errors, of each function: kStale for the number of a removed inode; kNotDirectory if the
/// function needs a directory; kCorrupt or kIo if stored metadata cannot be read. Functions that
/// change the version also return kReadOnly from the beginning of the seal on; kNoSpace if the disk
/// is too full, and kNameTooLong or kInvalid for names that no file can have.
class VersionWriter {
 public:
  virtual ~VersionWriter() = default;

  [[nodiscard]] virtual VersionInfo info() const = 0;

  /// Returns the entry with an inode number.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<OpenEntry> get(Ino ino) = 0;
  /// Finds a name in a directory.
  /// Errors: kNotFound if the directory has no such name.
  [[nodiscard]] virtual Result<OpenEntry> lookup(Ino directory, std::string_view name) = 0;
  /// Returns the inode number of a directory's parent.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<Ino> parent(Ino directory) = 0;

  /// Called with each entry of a directory. Returns false to stop.
  using Visitor = std::function<bool(std::string_view name, const OpenEntry&)>;
  /// Calls `visit` for each entry whose name is > `after` in byte order ("" = all), until `visit`
  /// returns false.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<void> list(Ino directory, std::string_view after,
                                          const Visitor& visit) = 0;

  /// Creates a file of any type.
  /// Errors: kExists if the name is taken.
  [[nodiscard]] virtual Result<OpenEntry> create(Ino directory, std::string_view name,
                                                 const NewFile& file) = 0;
  /// Gives a file another name (a hard link).
  /// Errors: kExists if the name is taken; kNotPermitted for a directory.
  [[nodiscard]] virtual Result<OpenEntry> link(Ino target, Ino directory,
                                               std::string_view name) = 0;
  /// Creates an independent file with the attributes and content of a file in a sealed version. The
  /// source must not be a directory. Several names of one hard-linked source become names of one
  /// file in the open version. Copies data only for chunks that the previous version does not have.
  /// Errors: kExists if the name is taken; kNotPermitted for a directory; kOtherVersion if the
  /// source belongs to another series.
  [[nodiscard]] virtual Result<OpenEntry> clone(VersionReader& source, Rank rank, Ino directory,
                                                std::string_view name) = 0;
  /// Removes a name of a file.
  /// Errors: kNotFound; kIsDirectory.
  [[nodiscard]] virtual Result<void> unlink(Ino directory, std::string_view name) = 0;
  /// Removes an empty directory.
  /// Errors: kNotFound; kNotEmpty.
  [[nodiscard]] virtual Result<void> remove_directory(Ino directory, std::string_view name) = 0;
  /// Renames a file or directory, as renameat2(2) does.
  /// Errors: kNotFound; kExists with RenameMode::kNoReplace; kInvalid if a directory would move
  /// below itself; kIsDirectory or kNotEmpty if the target cannot be replaced.
  [[nodiscard]] virtual Result<void> rename(Ino from_directory, std::string_view from_name,
                                            Ino to_directory, std::string_view to_name,
                                            RenameMode mode) = 0;

  /// Changes attributes. Returns the entry with its new attributes.
  /// Errors: kIsDirectory or kInvalid if a size is given for anything but a regular file.
  [[nodiscard]] virtual Result<OpenEntry> set_attributes(Ino ino,
                                                         const AttributeChange& change) = 0;
  /// Returns the target of a symlink.
  /// Errors: kInvalid if the inode is no symlink.
  [[nodiscard]] virtual Result<std::string> read_link(Ino ino) = 0;
  /// Returns the extended attributes of an inode, sorted by name.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<Xattrs> xattrs(Ino ino) = 0;
  /// Sets an extended attribute.
  /// Errors: kExists with XattrMode::kCreate; kNoAttribute with XattrMode::kReplace;
  /// kAttributeTooLarge if the value, or all attributes together, exceed the limits in
  /// varve/types.h; kInvalid if the name has not 1 to 255 bytes.
  [[nodiscard]] virtual Result<void> set_xattr(Ino ino, std::string_view name,
                                               std::string_view value, XattrMode mode) = 0;
  /// Removes an extended attribute.
  /// Errors: kNoAttribute if the attribute is not set.
  [[nodiscard]] virtual Result<void> remove_xattr(Ino ino, std::string_view name) = 0;

  /// Opens a regular file. After an unlink, an open file stays readable and writable through its
  /// OpenFiles.
  /// Errors: kIsDirectory; kInvalid for special files and symbolic links.
  [[nodiscard]] virtual Result<std::unique_ptr<OpenFile>> open(Ino ino, bool for_writing) = 0;

  /// Reads stored chunks to which the version may refer. Sets found[i] to whether all of wanted[i]
  /// was read and has the fingerprint. Both spans have the same size.
  virtual void read_known(std::span<const WantedChunk> /*wanted*/, KnownChunks /*which*/,
                          std::span<bool> found) {
    for (bool& one : found) one = false;
  }

  /// Returns the root's attributes for Varve's own use, hidden by xattrs().
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<Xattrs> own_attributes() { return Xattrs(); }

  /// Returns the control of removed files, for a mount; null if the version keeps none.
  /// Lifetime: as the VersionWriter.
  [[nodiscard]] virtual RemovedFiles* removed_files() { return nullptr; }

  /// Makes all changes so far durable.
  /// Errors: kNoSpace, kIo.
  [[nodiscard]] virtual Result<void> sync() = 0;

  /// Returns the number of OpenFiles opened for writing.
  [[nodiscard]] virtual std::size_t writers() const = 0;
};

/// The result of a seal.
struct SealOutcome {
  VersionInfo info;
  /// A sentence for the user if the clock is behind earlier versions; usually empty.
  std::string warning;
  /// The open version that continues the sealed version; only with SealMode::kKeep.
  std::optional<VersionInfo> next;
  /// The sealed entries' ranks, by which a mount translates inode numbers; see varve/mount.h.
  std::shared_ptr<const RankTable> rank_of;
};

/// Finds or creates the series, passes the series to `open`, and returns the result of `open`. If
/// `open` fails, removes a series created by the call.
/// Errors: those of Repository::create_series() and of `open`.
[[nodiscard]] Result<VersionInfo> open_in_series(
    Repository& repository, std::string_view name,
    const std::function<Result<VersionInfo>(const SeriesInfo&)>& open);

/// A directory's identity, as returned by stat(2).
struct DirectoryIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const DirectoryIdentity&) const = default;
};

struct StoreOptions {
  /// Directories stored without their entries, such as the repository itself. An identity with the
  /// inode 0 stands for all directories of the device.
  std::vector<DirectoryIdentity> without_entries;
  /// Called with the path below the source of each directory of `without_entries` in the tree. May
  /// be empty.
  std::function<void(const std::string& path)> left_out;
  /// Patterns of entries to exclude, as described in varve(1). The last matching pattern decides. A
  /// version being made equal to the directory loses excluded entries.
  std::vector<std::string> excludes;
  /// If set, only the listed entries are stored, with everything below and the directories above.
  /// Paths relative to the directory. The report names missing paths.
  std::optional<std::vector<std::string>> only;
  /// Stores directories with a valid CACHEDIR.TAG without their other entries.
  bool without_caches = false;
  /// Stores directories of another device than the source, such as mount points of other file
  /// systems and Btrfs subvolumes, as empty directories. Does not compare the devices of files.
  bool one_file_system = false;
  /// Called with the path below the source of each directory of another device that
  /// `one_file_system` leaves out. May be empty.
  std::function<void(const std::string& path)> other_device{};
};

/// Errors: kInvalid for a pattern or a path with which store_tree() would fail.
[[nodiscard]] Result<void> check_store_options(const StoreOptions& options);

/// Stores the tree below `directory` in an open version, without FUSE. Replaces entries of the same
/// names, so the same call continues an interrupted call. The report lists unreadable entries.
/// Calls `progress` after each file and each piece of data. `progress` may be empty; `progress`
/// stops the call by returning false.
/// Errors: kInterrupted if `progress` returned false; kNoSpace; kReadOnly; kIo if `directory`
/// cannot be opened; kIo or kCorrupt if the repository fails; those of check_store_options().
[[nodiscard]] Result<TransferReport> store_tree(
    VersionWriter& version, const std::string& directory,
    const std::function<bool(const TransferProgress&)>& progress, const StoreOptions& options = {});

/// A directory to store, and the version to store into.
struct StoreRequest {
  std::string series;  ///< Created if needed.
  std::string version;
  std::string directory;
  StoreOptions options;
  /// Set if the caller seals the version with seal_stored(). If the newest version was stored from
  /// the same directory, store_version() then starts with a clone of the newest version, and does
  /// not read files unchanged since then. store_version() makes the version equal to the directory.
  bool seals = false;
  /// Reads every file.
  bool read_all = false;
  /// Identifies the source to the next store; "" for the path of `directory`. Stores of different
  /// directories with one identity recognise the same files by their inodes.
  std::string source{};
  /// Threshold for the age of a file's mtime or ctime at the start, in seconds. The next store
  /// reads a younger file again, because a later change may not change the file's rounded time. For
  /// tests.
  std::uint32_t settle_s = 2;
  /// Opens the version, with the tree of `source` unless `source` is 0, in place of
  /// Repository::open_version() and clone_version(). May be empty. Used by a mount.
  std::function<Result<VersionInfo>(SeriesId series, VersionNumber source, const NewFile& root)>
      open{};
  /// Drops a refused version, in place of Repository::abandon_version(). May be empty.
  std::function<Result<void>(SeriesId series, VersionNumber number)> drop{};
  /// Refuses an empty directory. Also refuses a directory that has lost more than half of the names
  /// and of the bytes of the newest complete version or of a later incomplete version, not counting
  /// incomplete copies; or 90 % of the bytes and more than half of at least 10 files with content.
  /// "Newest" is by is_newer() (varve/retention.h). UpkeepSettings can
  /// turn the guard off. Only for `seals`, and without StoreOptions::only: a list may name few
  /// files. A refused store leaves no version begun by store_version(), and is recorded for
  /// Repository::refused_store().
  bool guard = false;
};

/// The result of Repository::store_version().
struct StoredVersion {
  VersionInfo info;
  TransferReport report;
  /// For seal_stored(): keeps the states of the source's files after the seal. May be empty.
  std::function<void(const VersionInfo& sealed)> keep_states{};
};

/// Removes a name of an open version's directory and, if the name is a directory, everything below
/// the directory. A missing name is no error.
/// Errors: those of VersionWriter::list(), unlink() and remove_directory().
[[nodiscard]] Result<void> remove_tree(VersionWriter& version, Ino directory,
                                       const std::string& name);

/// Gives an open version a claimed time, replacing an earlier claimed time. The seal keeps the
/// claimed time: see VersionInfo::claimed_at.
/// Errors: those of Repository::writer() and VersionWriter::set_xattr(); kNotFound if the series'
/// open version is another version.
[[nodiscard]] Result<void> claim_time(Repository& repository, const VersionInfo& version,
                                      const Timestamp& time);

/// Seals a version stored by store_version() with StoreRequest::seals, and keeps the states of the
/// source's files for the next store. If the states cannot be kept, the next store reads every
/// file.
/// Errors: those of Repository::seal().
[[nodiscard]] Result<SealOutcome> seal_stored(Repository& repository, const StoredVersion& stored);

}  // namespace varve
