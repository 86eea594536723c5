// SPDX-License-Identifier: Apache-2.0
// Maintenance of a repository: check, scrub, restore, export and store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "varve/repository.h"
#include "varve/result.h"

namespace varve {

/// The position of a container in check order: series, then file, then offset.
struct CheckPosition {
  SeriesId series{};
  std::uint32_t segment = 0;  ///< The file's number in the catalog.
  std::uint64_t offset = 0;
  auto operator<=>(const CheckPosition&) const = default;
};

struct CheckOptions {
  bool read_data = true;       ///< Read every frame and verify its checksum.
  bool verify_chunks = false;  ///< Also compare every chunk's SHA-256.
  /// Percentage of containers to read the data of. Each call draws them at random.
  unsigned percent = 100;
  std::uint64_t bytes_per_second = 0;  ///< Read limit; 0 = no limit.
  std::stop_token stop;                ///< Ends the check early; the report covers the part done.
  /// Skips the data of all containers up to and including this one.
  std::optional<CheckPosition> after;
};

struct CheckProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  CheckPosition reached;  ///< Position of the last container checked.
};

/// One damaged place. `where` names the repository's file. `affected` lists the files of versions
/// (SERIES/VERSION/path) that the damage touches.
struct Damage {
  std::string where;
  std::string what;
  std::vector<std::string> affected;
};

/// A harmless thing in the repository's folder that does not belong to the repository.
struct CheckNote {
  std::string where;
  std::string what;
};

/// Parity coverage of the files: the segments and volumes that no open version writes.
struct ParityCoverage {
  std::uint32_t percent = 0;  ///< Configured parity; 0 = none.
  std::uint64_t files = 0;
  std::uint64_t files_protected = 0;  ///< Files whose present content a parity file covers.
};

struct CheckReport {
  std::uint64_t versions = 0;
  std::uint64_t containers = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes_read = 0;
  std::vector<Damage> damages;
  std::vector<CheckNote> notes;  ///< Unknown files, and bytes past the ends of files.
  ParityCoverage parity;
  bool finished = true;  ///< False if the caller stopped the check.
};

struct ScrubOptions {
  std::uint64_t bytes_per_second = 0;  ///< Read limit; 0 = no limit.
  std::stop_token stop;
  bool restart = false;  ///< Begin at the start instead of resuming.
};

struct ScrubReport {
  CheckReport check;  ///< The result of this run. `finished` if the run reached the end.
  bool resumed = false;
  std::uint64_t damages_before = 0;  ///< Damages found by earlier runs of the same pass.
};

/// A change that a restore makes, or would make, to one entry of the target.
enum class RestoreChange : char {
  kAdded = '+',
  kChanged = 'M',   ///< Content or file type.
  kMetadata = 'm',  ///< Only owner, mode, times or extended attributes.
  kRemoved = '-',
};

/// Options of restore_version(); see `varve restore`.
struct RestoreOptions {
  /// Parts of the version to restore:
  /// - none: all of it;
  /// - one: the directory's content, or the file, directly into the target;
  /// - several: each one under its path in the version.
  std::vector<std::string> paths;
  bool sparse = true;            ///< Keep holes as holes.
  bool delete_others = false;    ///< Remove target entries that the version does not have.
  bool dry_run = false;          ///< Change nothing.
  bool compare_content = false;  ///< Also read files whose size and time are equal.
  bool scatter = false;          ///< Read in disk order; for spinning disks.
  /// Pieces read in one pass, 48 bytes of memory each.
  std::size_t scatter_pieces = std::size_t{1} << 19;
  std::uint32_t writers = 0;  ///< Threads that create files; 0 = by number of cores.
  /// Bytes after which the restore syncs its files and records them in the log.
  std::uint64_t segment_bytes = 1ULL << 30;
  /// Called with each change, from the calling thread. May be empty.
  std::function<void(RestoreChange change, const std::string& path)> changed;
};

struct TransferProgress {
  std::uint64_t files_done = 0;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

struct TransferReport {
  std::uint64_t entries = 0;    ///< Entries created or already present.
  std::uint64_t unchanged = 0;  ///< Entries that are files whose content was already present.
  std::uint64_t removed = 0;
  std::uint64_t bytes = 0;
  bool resumed = false;  ///< An interrupted restore was continued.
  /// Files that could not be read, or not given all their metadata, each with the reason.
  std::vector<std::string> problems;
};

/// Restores a version into a new or existing directory. Replaces what differs. Replaces a file only
/// once its new content is complete. An interrupted restore leaves a log in the directory; the same
/// call then continues from it. Calls `progress` after each file and each piece of data. `progress`
/// may be empty; it stops the restore by returning false.
/// Errors: kBusy if another restore uses the directory; kInterrupted if `progress` returned false.
[[nodiscard]] Result<TransferReport> restore_version(
    VersionReader& version, const std::string& directory, const RestoreOptions& options,
    const std::function<bool(const TransferProgress&)>& progress);

/// Writes a version's tree as an archive that tar(1) can read. `fd` may be a pipe. `paths` selects
/// parts as in RestoreOptions::paths. The report lists sockets and unreadable files as problems.
/// Calls `progress` as restore_version() does.
[[nodiscard]] Result<TransferReport> write_tar(
    VersionReader& version, int fd, const std::vector<std::string>& paths,
    const std::function<bool(const TransferProgress&)>& progress);

/// A directory's identity, as stat(2) returns it.
struct DirectoryIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const DirectoryIdentity&) const = default;
};

struct StoreOptions {
  /// Directories stored without their entries, such as the repository itself.
  std::vector<DirectoryIdentity> without_entries;
  /// Called with the path below the source of each such directory in the tree. May be empty.
  std::function<void(const std::string& path)> left_out;
};

/// Stores the tree below `directory` in an open version, without FUSE; see `varve store`. Calls
/// `progress` as restore_version() does.
[[nodiscard]] Result<TransferReport> store_tree(
    VersionWriter& version, const std::string& directory,
    const std::function<bool(const TransferProgress&)>& progress, const StoreOptions& options = {});

}  // namespace varve
