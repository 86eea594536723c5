// SPDX-License-Identifier: Apache-2.0
// The part of a repository for checks and known damage.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

struct CheckOptions;   // varve/check.h
struct CheckProgress;  // varve/check.h
struct CheckReport;    // varve/check.h
struct ScrubOptions;   // varve/check.h
struct ScrubReport;    // varve/check.h
struct EarlierCheck;   // varve/check.h
struct LostFiles;      // varve/check.h

/// Called while a check runs.
using CheckObserver = std::function<void(const CheckProgress&)>;

/// The part of a Repository for checks and known damage; see varve/check.h. Thread-safe. Errors
/// common to all functions: see Repository.
class RepositoryChecks {
 public:
  virtual ~RepositoryChecks() = default;
  /// Returns the results of the last checks and scrubs, by ascending depth. A result is dropped
  /// when a check of the same or a greater depth ends. A check of a part of the data counts only if
  /// the check found damage. Empty if no check was recorded.
  [[nodiscard]] virtual std::vector<EarlierCheck> earlier_checks() = 0;
  /// Returns whether the catalog is older than the rest of the repository, as after a part of the
  /// folder was restored from a copy. Readers then see an older state; writers refuse to open the
  /// repository, until `varve repair` has built a new catalog. Reads the labels of all series.
  /// Errors: the common errors; kUnsupported for labels of a newer format.
  [[nodiscard]] virtual Result<bool> has_older_catalog() = 0;
  /// Checks the repository. Works beside a writer. The report lists damage; the call itself fails
  /// only if no check was possible. Records the result for earlier_checks(), if the repository is
  /// writable.
  /// Errors: kIo if the operating system reports an error that is no damage.
  [[nodiscard]] virtual Result<CheckReport> check(const CheckOptions& options,
                                                  const CheckObserver& progress) = 0;
  /// Checks everything, including the SHA-256 of every chunk, from the position where the last run
  /// stopped. After a complete run, the next run begins at the start. Works beside a writer. Writes
  /// the position to one file in the repository's folder and changes no stored data.
  /// Errors: kIo, kReadOnly or kNoSpace if the position cannot be written.
  [[nodiscard]] virtual Result<ScrubReport> scrub(const ScrubOptions& options,
                                                  const CheckObserver& progress) = 0;
  /// Brings the quarantine up to date. Adds the damaged chunks named by the record of checks: from
  /// then on, new data does not refer to a quarantined chunk, and new occurrences of the chunk's
  /// content are stored again. Releases chunks that are sound, or needed by no version. Reads all
  /// chunks concerned, and changes no stored data. Returns the number of added and released chunks.
  /// Opening a repository for writing does the same if the record names chunks.
  /// Errors: kReadOnly; kUnavailable if an object store does not answer.
  [[nodiscard]] virtual Result<std::uint64_t> settle_quarantine() = 0;
  /// Returns the files of a sealed version with chunks in quarantine. A read-only repository adds
  /// files with chunks named by the record of checks. Reads the version's tree only if there are
  /// such chunks.
  /// Errors: the common errors; kNotFound also for an open version.
  [[nodiscard]] virtual Result<LostFiles> lost_files(SeriesId series, VersionNumber number) = 0;
  /// Returns the sealed versions for which lost_files() returns files, in ascending number.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<VersionNumber>> versions_with_losses(
      SeriesId series) = 0;
  /// Returns a number that changes when `varve repair` marks more chunks of the series as lost; 0
  /// without lost chunks.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::uint64_t> lost_chunks_stamp(SeriesId series) = 0;
};

}  // namespace varve
