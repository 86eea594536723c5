// SPDX-License-Identifier: Apache-2.0
// One series of versions: the seam between the repository and the placement of a series' data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "meta/lmdb.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/rewrite.h"
#include "varve/types.h"
#include "version/open_version_check.h"

namespace varve::series {

/// Whether arranging gives way to writers.
enum class Pace : std::uint8_t { kAtOnce, kBackground };

/// The versions of one series. Thread-safe. Functions named as functions of Repository are
/// documented in varve/repository.h, and have the same errors. After the series was removed, all
/// functions return kNotFound.
class Series {
 public:
  virtual ~Series() = default;

  [[nodiscard]] virtual Result<std::vector<VersionInfo>> versions() = 0;
  [[nodiscard]] virtual Result<std::vector<VersionInfo>> open_versions(OpenSizes sizes) = 0;
  [[nodiscard]] virtual Result<VersionInfo> find_version(std::string_view name) = 0;
  [[nodiscard]] virtual Result<std::optional<VersionInfo>> version_to_end(std::string_view name,
                                                                          VersionNumber source) = 0;
  [[nodiscard]] virtual Result<VersionInfo> open_version(std::string_view name,
                                                         const NewFile& root) = 0;
  [[nodiscard]] virtual Result<std::shared_ptr<VersionWriter>> writer() = 0;
  [[nodiscard]] virtual Result<std::shared_ptr<VersionReader>> reader(VersionNumber number) = 0;
  [[nodiscard]] virtual Result<SealOutcome> seal(VersionNumber number, std::string_view new_name,
                                                 SealMode mode, SealWriters writers) = 0;
  [[nodiscard]] virtual Result<VersionInfo> clone_version(VersionNumber source,
                                                          std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> rename_version(VersionNumber number,
                                                    std::string_view new_name) = 0;
  [[nodiscard]] virtual Result<void> abandon_version(VersionNumber number, bool force) = 0;
  [[nodiscard]] virtual Result<DeletionForecast> forecast_deletion(
      const std::vector<VersionNumber>& numbers, const DeletionOptions& options) = 0;
  [[nodiscard]] virtual Result<DeletionForecast> delete_versions(
      const std::vector<VersionNumber>& numbers, const DeletionOptions& options) = 0;
  [[nodiscard]] virtual Result<void> check_deletion(VersionNumber number) = 0;
  [[nodiscard]] virtual Result<void> lock_version(VersionNumber number, Timestamp until) = 0;
  /// Returns the sizes of every sealed version, or only of `only`.
  [[nodiscard]] virtual Result<std::vector<VersionUsage>> version_usage(
      std::optional<VersionNumber> only) = 0;
  [[nodiscard]] virtual Result<PoolUsage> pool_usage(VersionNumber number) = 0;
  [[nodiscard]] virtual Result<std::vector<VersionLock>> version_locks() = 0;
  [[nodiscard]] virtual Result<std::vector<CategoryInfo>> categories() = 0;
  [[nodiscard]] virtual Result<ArrangingDebt> arranging_debt() = 0;

  /// Arranges until the policy has no work left. Adds the work to `done`. Returns false if the
  /// caller or a deletion stopped arranging.
  [[nodiscard]] virtual Result<bool> arrange(const ArrangeOptions& options, Pace pace,
                                             ArrangeProgress& done) = 0;
  /// Makes missing parity of an arranged series and removes unused parity. Logs a full disk or
  /// damage. Returns false if the caller stopped the work.
  [[nodiscard]] virtual Result<bool> protect(const ArrangeOptions& options,
                                             ArrangeProgress& done) = 0;

  /// Verifies the index of the newest sealed version, whose number is `newest`.
  /// Errors: kNotFound without an index; kCorrupt. The next open version rebuilds a damaged index.
  [[nodiscard]] virtual Result<void> verify_index(VersionNumber newest) = 0;
  /// Reads everything in an open version's staging folder, in a repository opened read-only.
  /// Errors: as version::read_staged_state(); kNotFound if the version does not exist.
  [[nodiscard]] virtual Result<version::StagedState> read_staged_state(VersionNumber number) = 0;
  /// Returns Repository::lost_chunks_stamp().
  [[nodiscard]] virtual Result<std::uint64_t> lost_chunks_stamp() = 0;
  /// Hides quarantined chunks of the series' own store from the open version: the version stores
  /// the chunks' content again.
  virtual void hide(const base::IdRuns& lost) = 0;
  /// Adds the sizes of the series in `txn`.
  [[nodiscard]] virtual Result<void> add_stats(const meta::Txn& txn, RepositoryStats& stats) = 0;
  /// Removes the series' record and files. Errors: kNotEmpty if the series has versions.
  [[nodiscard]] virtual Result<void> remove() = 0;
  /// Brings manifests and labels, from which a lost catalog is rebuilt, up to date. Called after
  /// the repository was opened.
  [[nodiscard]] virtual Result<void> complete_manifests() = 0;
  /// Writes the labels after a change to the catalog. Logs errors.
  virtual void write_labels() = 0;

  /// Makes the open version durable, if loaded.
  /// Errors: the failure's error, with the data that a crash would lose.
  [[nodiscard]] virtual Result<void> sync() = 0;
  /// Stops the open version's background work.
  virtual void stop() = 0;
  /// Drops the open version from memory. The repository calls release() before ending the read
  /// service.
  virtual void release() = 0;
};

}  // namespace varve::series
