// SPDX-License-Identifier: Apache-2.0
// The part of a repository that stores directories and streams as versions.
#pragma once

#include <functional>
#include <string>

#include "varve/options.h"
#include "varve/result.h"

namespace varve {

struct StoreRequest;   // varve/backup.h
struct StoredVersion;  // varve/backup.h
struct StorePlan;      // varve/store.h
struct StreamRequest;  // varve/store.h
enum class StoreChange : char;

/// The part of a Repository that stores directories and streams as versions. Thread-safe. Errors
/// common to all functions: see Repository.
class Storing {
 public:
  virtual ~Storing() = default;

  /// Stores a directory as a version and makes the version durable, as `varve store` does. The
  /// version stays open: seal it with seal_stored() or Repository::seal().
  /// Continues the open version if the version has the requested name, for example after an
  /// interruption, and makes the version equal to the directory if store_version() began the
  /// version. If an interrupted store_version() of the same directory left a version under another
  /// name, the version gets the requested name and is continued. Otherwise seals the open version
  /// as Repository::open_version() does, which refuses the version of an interrupted store. Stores
  /// the repository's own folder as an empty directory. Calls `progress` as store_tree() does.
  /// Errors: those of Repository::open_version() and store_tree(); kInvalid if the directory is in
  /// the repository; kNotDirectory; kIo if the directory cannot be found; kRefused as
  /// StoreRequest::guard says.
  [[nodiscard]] virtual Result<StoredVersion> store_version(
      const StoreRequest& request,
      const std::function<bool(const TransferProgress&)>& progress) = 0;
  /// Returns the plan of store_version(), against the newest sealed version of the series. Changes
  /// nothing, notes no refused store, and reads no file: a file with only a changed ctime is not
  /// reported, but counts as a file to read. Works on a read-only repository. Calls `changed` for
  /// each difference; `changed` may be empty. Calls `progress` as store_tree() does.
  /// Errors: kInterrupted; those of store_version() about the directory.
  [[nodiscard]] virtual Result<StorePlan> plan_store(
      const StoreRequest& request,
      const std::function<void(StoreChange change, const std::string& path)>& changed,
      const std::function<bool(const TransferProgress&)>& progress) = 0;
  /// Stores all bytes of the descriptor `fd`, or the members of the archive read from `fd`, as a
  /// version, and makes the version durable. The version stays open, as after store_version(). If
  /// an open version has the requested name and was not begun by store_stream(), adds to the
  /// version and replaces.
  ///
  /// An archive may be tar, pax, cpio or zip, also compressed. A member's leading slashes are
  /// removed. The last of several members with one name counts. Owners are the numbers in the
  /// archive. The report lists metadata that a version cannot have.
  /// Errors: those of Repository::open_version(); kInvalid for a file's path, an archive that is
  /// truncated or damaged, a member with .. in its name, a member below a member that is no
  /// directory, and a hard link to no member; kIo if `fd` cannot be read; kInterrupted if
  /// `progress` returned false; kRefused as StreamRequest::refuses_empty says.
  [[nodiscard]] virtual Result<StoredVersion> store_stream(
      const StreamRequest& request, int fd,
      const std::function<bool(const TransferProgress&)>& progress) = 0;
};

}  // namespace varve
