// SPDX-License-Identifier: Apache-2.0
// Refuses the store of a source that seems incomplete: a directory whose disk is not mounted, or a
// stream whose writer failed. A sealed version of an incomplete source would count as a backup, and
// retention rules would delete sound versions instead.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "varve/backup.h"
#include "varve/refused_store.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/store.h"

namespace varve::io {
class FileSystem;
}  // namespace varve::io

namespace varve::repo {

/// The counts that the guard compares.
struct SourceCounts {
  std::uint64_t names = 0;                        ///< Names below the directory.
  std::uint64_t bytes = 0;                        ///< Data of the files.
  std::function<Result<std::uint64_t>()> filled;  ///< Counts the names of files with data.
};

/// Compares a directory with the newest versions of its series. Not thread-safe.
/// Lifetime: the repository and the request must outlive the guard.
class SourceGuard {
 public:
  /// Reads the setting of the repository.
  /// Errors: as for Repository::upkeep_settings().
  [[nodiscard]] static Result<SourceGuard> create(Repository& repository,
                                                  const StoreRequest& request);

  /// Checks that the directory has an entry to store. Call before a version is opened. Notes a
  /// refused store.
  /// Errors: kRefused; as for transfer::is_empty_source().
  [[nodiscard]] Result<void> check_before_opening();
  /// Compares the outcome of the walk through the directory with the newest versions. `version` has
  /// the stored directory.
  /// Errors: kRefused; the errors of reading `version`.
  [[nodiscard]] Result<void> check_stored(VersionWriter& version, const TransferReport& report);
  /// Sets `plan.refusal` as check_before_opening() and check_stored() would decide. Notes nothing.
  /// Errors: as for transfer::is_empty_source().
  [[nodiscard]] Result<void> judge(StorePlan& plan);

 private:
  SourceGuard(Repository& repository, const StoreRequest& request, bool is_on)
      : repository_(repository), request_(request), is_on_(is_on) {}
  /// Returns the sealed versions to compare with, oldest first: the newest complete version and all
  /// later incomplete versions; all versions of a series without a complete one. Versions are in
  /// the order of is_newer(). Incomplete copies never count. Versions with a time ahead of their
  /// seal or of the clock count only without other versions.
  [[nodiscard]] Result<std::vector<VersionInfo>> measures();
  /// Errors: kRefused if too much is lost against any of measures(); the errors of
  /// `counts.filled`.
  [[nodiscard]] Result<void> compare(const SourceCounts& counts);
  /// Checks that a source with nearly no bytes left still has half of the files with content.
  [[nodiscard]] Result<void> compare_filled(const VersionInfo& version, const SourceCounts& counts);
  /// Returns the error for a source without entries.
  [[nodiscard]] Result<void> refuse_empty();

  Repository& repository_;
  const StoreRequest& request_;
  const bool is_on_;
};

/// Notes a refused store into a series, if the series exists. Logs errors.
void note_refused(Repository& repository, const std::string& series, RefusalReason reason);

/// Returns whether the series has an open version named `version`.
[[nodiscard]] bool has_open_version(Repository& repository, const std::string& series,
                                    const std::string& version);

/// Drops a version: StoreRequest::drop.
using DropVersion = std::function<Result<void>(SeriesId series, VersionNumber number)>;
/// Drops a version that must not be sealed, and with `new_series` the version's series. Logs
/// errors. `drop` may be empty.
void drop_version(Repository& repository, io::FileSystem& files, const DropVersion& drop,
                  const VersionInfo& version, bool new_series);

}  // namespace varve::repo
