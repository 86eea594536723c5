// SPDX-License-Identifier: Apache-2.0
// Looking after a repository: checking that everything stored can be given back.
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

/// A container, in the order in which they are read: by series, file and offset.
struct CheckPosition {
  SeriesId series{};
  std::uint32_t segment = 0;  ///< As the catalog numbers files.
  std::uint64_t offset = 0;
  auto operator<=>(const CheckPosition&) const = default;
};

struct CheckOptions {
  bool read_data = true;       ///< Read every frame and verify its checksum.
  bool verify_chunks = false;  ///< Also compare every chunk's SHA-256.
  /// Of how many of a hundred containers the data is read; others are chosen each time.
  unsigned percent = 100;
  std::uint64_t bytes_per_second = 0;  ///< At most; 0: no bound.
  std::stop_token stop;                ///< What was checked until then is in the report.
  /// The data of containers up to this one was read before, and is not read again.
  std::optional<CheckPosition> after;
};

struct CheckProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  CheckPosition reached;  ///< Of the last container.
};

/// One thing that is wrong. `where` names the file of the repository, `affected` the files
/// of versions (SERIES/VERSION/path) that the damage touches.
struct Damage {
  std::string where;
  std::string what;
  std::vector<std::string> affected;
};

/// Something in the repository's folder that is no part of the repository, and does no harm.
struct CheckNote {
  std::string where;
  std::string what;
};

/// Files are segments and volumes that no open version writes.
struct ParityCoverage {
  std::uint32_t percent = 0;  ///< That is wanted; 0: none.
  std::uint64_t files = 0;
  std::uint64_t files_protected = 0;  ///< That a parity file covers as they are.
};

struct CheckReport {
  std::uint64_t versions = 0;
  std::uint64_t containers = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes_read = 0;
  std::vector<Damage> damages;
  std::vector<CheckNote> notes;  ///< Files that Varve does not know, and bytes behind files' ends.
  ParityCoverage parity;
  bool finished = true;  ///< False if it was stopped.
};

/// Checks a repository beside any writer. An error is returned only where checking itself
/// was impossible; damage is a result, in the report.
[[nodiscard]] Result<CheckReport> check_repository(
    Repository& repository, const CheckOptions& options,
    const std::function<void(const CheckProgress&)>& progress);

struct ScrubOptions {
  std::uint64_t bytes_per_second = 0;  ///< At most; 0: no bound.
  std::stop_token stop;
  bool anew = false;  ///< Begin at the start.
};

struct ScrubReport {
  CheckReport check;  ///< Of this run; finished if it came to the end.
  bool resumed = false;
  std::uint64_t damages_before = 0;  ///< Found by earlier runs of the same pass.
};

/// Checks everything, every chunk's SHA-256 included, from where the last run stopped; when it
/// comes to the end, the next one begins at the start. Needs to write one file in the
/// repository's folder, beside any writer. What is stored is not changed.
[[nodiscard]] Result<ScrubReport> scrub_repository(
    Repository& repository, const ScrubOptions& options,
    const std::function<void(const CheckProgress&)>& progress);

/// What a restore does, or would do, to one entry of the target.
enum class RestoreChange : char {
  kAdded = '+',
  kChanged = 'M',   ///< Its content, or what it is.
  kMetadata = 'm',  ///< Only owner, mode, times or extended attributes.
  kRemoved = '-',
};

/// How restore_version() puts a version's tree below a directory; see `varve restore`.
struct RestoreOptions {
  /// Parts of the version. None: all of it. One: the directory's content, or the file. Several:
  /// each under its path in the version.
  std::vector<std::string> paths;
  bool sparse = true;            ///< Holes stay holes.
  bool delete_others = false;    ///< Remove what the version does not have.
  bool dry_run = false;          ///< Change nothing.
  bool compare_content = false;  ///< Read files of the same size and time too.
  bool scatter = false;          ///< Read in the order of the disk: for spinning disks.
  std::size_t scatter_pieces = std::size_t{1} << 19;  ///< Read in one pass, at 48 bytes each.
  std::uint32_t writers = 0;  ///< Threads that make files; 0 = by the number of cores.
  /// After so many bytes what was restored is synced and noted in the log.
  std::uint64_t segment_bytes = 1ULL << 30;
  /// Told of each change, from the calling thread; may be empty.
  std::function<void(RestoreChange change, const std::string& path)> changed;
};

struct TransferProgress {
  std::uint64_t files_done = 0;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

struct TransferReport {
  std::uint64_t entries = 0;    ///< Made, or there already.
  std::uint64_t unchanged = 0;  ///< Of these, files whose content was there already.
  std::uint64_t removed = 0;
  std::uint64_t bytes = 0;
  bool resumed = false;  ///< An interrupted restore was continued.
  /// Files that could not be read or given all their metadata, with the reason.
  std::vector<std::string> problems;
};

/// `progress` is called after each file and each piece of data; it may be empty, and stops the
/// transfer with kInterrupted by returning false.
///
/// Restores into a new or existing directory; what differs is replaced, never in part: a file
/// that stands there is kept until the new one is whole. Interrupted, it leaves a log in the
/// directory, by which the same call goes on. kBusy if another restore uses the directory.
[[nodiscard]] Result<TransferReport> restore_version(
    VersionReader& version, const std::string& directory, const RestoreOptions& options,
    const std::function<bool(const TransferProgress&)>& progress);

/// Writes a version's tree, or parts of it as RestoreOptions::paths names them, as an archive that
/// tar(1) understands, to a descriptor that may be a pipe. Sockets and what cannot be read are
/// problems.
[[nodiscard]] Result<TransferReport> write_tar(
    VersionReader& version, int fd, const std::vector<std::string>& paths,
    const std::function<bool(const TransferProgress&)>& progress);

/// A directory by its identity, as stat(2) tells it.
struct DirectoryIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const DirectoryIdentity&) const = default;
};

struct StoreOptions {
  /// Directories that are stored without their entries, such as the repository itself.
  std::vector<DirectoryIdentity> without_entries;
  /// Called for each of them that the tree has, with its path below the source. May be empty.
  std::function<void(const std::string& path)> left_out;
};

/// Stores the tree below `directory` in an open version without FUSE; see `varve store`.
[[nodiscard]] Result<TransferReport> store_tree(
    VersionWriter& version, const std::string& directory,
    const std::function<bool(const TransferProgress&)>& progress, const StoreOptions& options = {});

}  // namespace varve
