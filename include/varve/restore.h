// SPDX-License-Identifier: Apache-2.0
// Copies sealed versions out of a repository: into a directory, or as an archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

class VersionReader;

/// A change to one entry of the target, made by a restore or planned.
enum class RestoreChange : char {
  kAdded = '+',
  kChanged = 'M',   ///< Content or file type.
  kMetadata = 'm',  ///< Only owner, mode, times or extended attributes.
  kRemoved = '-',
};

/// The moments at which a restore records its progress in its log.
enum class RecoveryLog : std::uint8_t {
  kSegment,  ///< After each RestoreOptions::segment_bytes, in the background.
  /// After each kRecoveryBufferBytes, before the restore goes on. An interrupted restore then
  /// writes at most kRecoveryBufferBytes again.
  kBuffer,
};
/// The size of an assembly buffer.
inline constexpr std::uint64_t kRecoveryBufferBytes = 4ULL << 20;

/// Options of restore_version(); see `varve restore`.
struct RestoreOptions {
  /// Parts of the version to restore:
  /// - none: the whole version;
  /// - one path: the directory's content, or the file, directly into the target;
  /// - several paths: each part under its path in the version.
  std::vector<std::string> paths;
  bool sparse = true;            ///< Keep holes as holes.
  bool delete_others = false;    ///< Remove target entries missing in the version.
  bool dry_run = false;          ///< Change nothing.
  bool compare_content = false;  ///< Also read files whose size and time are equal.
  /// Restore owners and groups. Otherwise, the user owns the entries.
  bool owners = true;
  bool scatter = false;  ///< Read in disk order; for spinning disks.
  /// Pieces read in one pass, 48 bytes of memory each.
  std::size_t scatter_pieces = std::size_t{1} << 19;
  std::uint32_t writers = 0;  ///< Threads that create files; 0 = by number of cores.
  /// Bytes after which the restore syncs written files and records the files in the log.
  std::uint64_t segment_bytes = 1ULL << 30;
  RecoveryLog recovery_log = RecoveryLog::kSegment;  ///< kBuffer excludes `scatter`.
  /// Folders of Varve itself, such as the repository. The restore changes nothing in such folders,
  /// in any folder of a repository, or in a mount of a repository.
  std::vector<std::string> own_folders;
  /// Called with each change, from the calling thread. May be empty.
  std::function<void(RestoreChange change, const std::string& path)> changed;
  /// Called with each entry that the restore leaves although the entry is in the way, or should be
  /// removed, and with the reason. The report also lists such entries as problems. May be empty.
  std::function<void(const std::string& path, const std::string& reason)> kept;
};

/// The kinds of places that a user names as the target of a command.
enum class PlaceKind : std::uint8_t {
  kDirectory,
  kFile,
  kRepository,  ///< May be an existing repository, but not lie in a repository.
};
/// Refuses a place in a repository: a command would write among the files of the backups. The place
/// may not exist yet. `own`: folders of Varve itself. `advice` ends the message. Compares the
/// identities of all folders above, and so finds a repository behind links and bind mounts.
/// Errors: kInvalid.
[[nodiscard]] Result<void> check_outside_repositories(const std::string& path, PlaceKind kind,
                                                      const std::vector<std::string>& own,
                                                      const std::string& advice);

/// Restores a version into a new or existing directory. Replaces differing entries. Replaces a file
/// only once the new content is complete. An interrupted restore leaves a log in the directory; the
/// same call then continues from the log. Never removes or changes a folder of a repository, and
/// removes no mount point and nothing on another file system than the file system of `directory`.
/// Calls `progress` after each file and each piece of data. `progress` may be empty; `progress`
/// stops the restore by returning false.
/// Errors: kInvalid if `directory` is in a repository; kBusy if another restore uses `directory`;
/// kInterrupted if `progress` returned false; kNoSpace or kReadOnly if the target takes no more
/// data; kNotFound if the version lacks a path.
[[nodiscard]] Result<TransferReport> restore_version(
    VersionReader& version, const std::string& directory, const RestoreOptions& options,
    const std::function<bool(const TransferProgress&)>& progress);

/// Writes a version's tree as an archive for tar(1). `fd` may be a pipe. `paths` selects parts as
/// in RestoreOptions::paths. The report lists sockets and unreadable files as problems. Calls
/// `progress` as restore_version() does.
/// Errors: kNotFound if the version lacks a path; kInterrupted if `progress` returned false;
/// kNoSpace or kIo if `fd` takes no more data.
[[nodiscard]] Result<TransferReport> write_tar(
    VersionReader& version, int fd, const std::vector<std::string>& paths,
    const std::function<bool(const TransferProgress&)>& progress);

/// Ends of problem texts, for a socket left out by write_tar() and a special file left out by
/// write_zip(): the archive format cannot represent such files.
inline constexpr std::string_view kSocketLeftOut = "left out: an archive cannot hold sockets";
inline constexpr std::string_view kSpecialLeftOut =
    "left out: a zip archive holds files, directories and symlinks only";

/// Writes a version's tree as a zip archive, for machines without tar(1). Owners, extended
/// attributes and holes are lost, and each name of a hard-linked file becomes a file. Names other
/// than UTF-8 are escaped. `fd`, `paths` and `progress` as for write_tar(). Sets the UTF-8 mark of
/// names only if the character set of the locale (LC_CTYPE) is UTF-8.
/// Errors: those of write_tar(); kCorrupt if any byte of the part is damaged.
[[nodiscard]] Result<TransferReport> write_zip(
    VersionReader& version, int fd, const std::vector<std::string>& paths,
    const std::function<bool(const TransferProgress&)>& progress);

}  // namespace varve
