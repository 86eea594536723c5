// SPDX-License-Identifier: Apache-2.0
// Stores streams and archives as versions, and plans the store of a directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// A difference between a directory and the version that a store would start from.
enum class StoreChange : char {
  kAdded = '+',
  kChanged = 'M',   ///< Another type, size or modification time.
  kMetadata = 'm',  ///< Only another mode or owner.
  kRemoved = '-',   ///< A removed directory counts once.
};

/// The work that a store would have.
struct StorePlan {
  std::uint64_t entries = 0;    ///< Entries that the version would have, with the root.
  std::uint64_t unchanged = 0;  ///< Files that the store would not read.
  std::uint64_t removed = 0;
  std::uint64_t bytes = 0;  ///< Bytes of the files that the store would read, with holes.
  std::vector<std::string> problems;
};

/// Returns the plan of store_version(), against the newest sealed version of the series. Changes
/// nothing, and reads no file: a file of which only the ctime changed is not reported, but counts
/// as one to read. Works on a repository that was opened read-only. Calls `changed` for each
/// difference; it may be empty. Calls `progress` as store_tree() does.
/// Errors: kInterrupted; those of store_version() that concern the directory.
[[nodiscard]] Result<StorePlan> plan_store(
    Repository& repository, const StoreRequest& request,
    const std::function<void(StoreChange change, const std::string& path)>& changed,
    const std::function<bool(const TransferProgress&)>& progress);

/// A stream to store as a version.
struct StreamRequest {
  std::string series;  ///< Created if needed.
  std::string version;
  /// The path of the one file of the version that gets the stream; "" if the stream is an archive,
  /// whose members become the version's entries.
  std::string file;
  /// Set if the caller seals the version with seal_stored(). Then no incomplete version stays: a
  /// failure drops it, and the same call continues with an empty one after a crash.
  bool seals = false;
  /// Opens the version, as StoreRequest::open does. May be empty.
  std::function<Result<VersionInfo>(SeriesId series, VersionNumber source, const NewFile& root)>
      open{};
  /// Drops an incomplete version, in place of Repository::abandon_version(). May be empty.
  std::function<Result<void>(SeriesId series, VersionNumber number)> drop{};
  /// Called once the whole stream is stored. An error is one of the stream. May be empty.
  std::function<Result<void>()> confirm{};
  /// Refuses a stream without a byte, and an archive without a member, after `confirm`. The refused
  /// store is noted for Repository::refused_store().
  bool refuses_empty = false;
};

/// Stores all bytes of the descriptor `fd`, or the members of the archive in it, as a version, and
/// makes it durable. The version stays open, as after store_version(). If an open version has the
/// requested name and store_stream() did not begin it, adds to it and replaces.
///
/// An archive may be tar, pax, cpio or zip, also compressed. A member's leading slashes are
/// removed. The last of several members with one name counts. Owners are those of the numbers in
/// the archive. The report lists metadata that a version cannot have.
/// Errors: those of Repository::open_version(); kInvalid for a file's path, an archive that is
/// truncated or damaged, a member with .. in its name, one below a member that is no directory, and
/// a hard link to no member; kIo if `fd` cannot be read; kInterrupted if `progress` returned false;
/// kRefused as StreamRequest::refuses_empty says.
[[nodiscard]] Result<StoredVersion> store_stream(
    Repository& repository, const StreamRequest& request, int fd,
    const std::function<bool(const TransferProgress&)>& progress);

}  // namespace varve
