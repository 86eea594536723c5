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

/// A difference between a directory and the version from which a store would start.
enum class StoreChange : char {
  kAdded = '+',
  kChanged = 'M',   ///< Another type, size or modification time.
  kMetadata = 'm',  ///< Only another mode or owner.
  kRemoved = '-',   ///< A removed directory counts once.
};

/// The work of a planned store.
struct StorePlan {
  std::uint64_t entries = 0;          ///< Entries of the planned version, without the root.
  std::uint64_t unchanged = 0;        ///< Files that the store would not read.
  std::uint64_t unchanged_bytes = 0;  ///< Data of the unchanged files.
  std::uint64_t removed = 0;
  std::uint64_t bytes = 0;   ///< Bytes of the files that the store would read, with holes.
  std::uint64_t filled = 0;  ///< Names of files that are not empty.
  std::vector<std::string> problems;
  /// The message with which store_version() would refuse the directory (StoreRequest::guard); ""
  /// if not refused.
  std::string refusal{};
};

/// Returns the plan of store_version(), against the newest sealed version of the series. Changes
/// nothing, notes no refused store, and reads no file: a file with only a changed ctime is not
/// reported, but counts as a file to read. Works on a read-only repository. Calls `changed` for
/// each difference; `changed` may be empty. Calls `progress` as store_tree() does.
/// Errors: kInterrupted; those of store_version() about the directory.
[[nodiscard]] Result<StorePlan> plan_store(
    Repository& repository, const StoreRequest& request,
    const std::function<void(StoreChange change, const std::string& path)>& changed,
    const std::function<bool(const TransferProgress&)>& progress);

/// A stream to store as a version.
struct StreamRequest {
  std::string series;  ///< Created if needed.
  std::string version;
  /// The path of the version's only file, which gets the stream; "" if the stream is an archive,
  /// whose members become the version's entries.
  std::string file;
  /// Set if the caller seals the version with seal_stored(). Then no incomplete version stays: a
  /// failure drops the version, and after a crash the same call continues with an empty version.
  bool seals = false;
  /// Opens the version, as StoreRequest::open does. May be empty.
  std::function<Result<VersionInfo>(SeriesId series, VersionNumber source, const NewFile& root)>
      open{};
  /// Drops an incomplete version, in place of Repository::abandon_version(). May be empty.
  std::function<Result<void>(SeriesId series, VersionNumber number)> drop{};
  /// Called once the whole stream is stored. An error counts as an error of the stream. May be
  /// empty.
  std::function<Result<void>()> confirm{};
  /// Refuses a stream without a byte, and an archive without a member, after `confirm`. The refused
  /// store is noted for Repository::refused_store().
  bool refuses_empty = false;
};

/// Stores all bytes of the descriptor `fd`, or the members of the archive read from `fd`, as a
/// version, and makes the version durable. The version stays open, as after store_version(). If an
/// open version has the requested name and was not begun by store_stream(), adds to the version and
/// replaces.
///
/// An archive may be tar, pax, cpio or zip, also compressed. A member's leading slashes are
/// removed. The last of several members with one name counts. Owners are the numbers in the
/// archive. The report lists metadata that a version cannot have.
/// Errors: those of Repository::open_version(); kInvalid for a file's path, an archive that is
/// truncated or damaged, a member with .. in its name, a member below a member that is no
/// directory, and a hard link to no member; kIo if `fd` cannot be read; kInterrupted if `progress`
/// returned false; kRefused as StreamRequest::refuses_empty says.
[[nodiscard]] Result<StoredVersion> store_stream(
    Repository& repository, const StreamRequest& request, int fd,
    const std::function<bool(const TransferProgress&)>& progress);

}  // namespace varve
