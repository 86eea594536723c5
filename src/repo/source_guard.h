// SPDX-License-Identifier: Apache-2.0
// Refuses the store of a source that seems incomplete: a directory whose disk is not mounted, or a
// stream whose writer failed. A sealed version of an incomplete source would count as a backup, and
// retention rules would delete sound versions instead.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "varve/backup.h"
#include "varve/refused_store.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::repo {

/// Compares a directory with the newest version of its series. Not thread-safe.
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
  /// Compares the outcome of the walk through the directory with the newest version. `version` has
  /// the stored directory.
  /// Errors: kRefused; the errors of reading `version`.
  [[nodiscard]] Result<void> check_stored(VersionWriter& version, const TransferReport& report);

 private:
  SourceGuard(Repository& repository, const StoreRequest& request, bool is_on)
      : repository_(repository), request_(request), is_on_(is_on) {}
  /// Returns the series' newest sealed version, ignoring incomplete copies.
  [[nodiscard]] Result<std::optional<VersionInfo>> newest_whole();
  /// Checks that a source with nearly no bytes left still has half of the files with content.
  [[nodiscard]] Result<void> check_filled(VersionWriter& version, const VersionInfo& newest,
                                          std::uint64_t bytes);
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
void drop_version(Repository& repository, const DropVersion& drop, const VersionInfo& version,
                  bool new_series);

}  // namespace varve::repo
