// SPDX-License-Identifier: Apache-2.0
// The part of a repository for the versions of each series.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

// Each header defines the types of one job: include the headers of the program's jobs.
class BesideFiles;        // varve/beside.h
class VersionReader;      // varve/browse.h
class VersionWriter;      // varve/backup.h
struct NewFile;           // varve/backup.h
struct SealOutcome;       // varve/backup.h
struct DeletionForecast;  // varve/retention.h
struct VersionLock;       // varve/retention.h
struct VersionUsage;      // varve/retention.h
struct ArrangeOptions;    // varve/arrange.h
struct ArrangeReport;     // varve/arrange.h
struct ArrangingDebt;     // varve/arrange.h
struct CategoryInfo;      // varve/arrange.h

/// Whether SeriesVersions::open_versions() measures the open version. Measuring opens files, so
/// that a list of many open versions takes time.
enum class OpenSizes : std::uint8_t {
  kMeasured,
  kUnknown,  ///< The sizes are 0.
};

/// The part of a Repository for the versions of a series: opening, sealing, reading, deleting and
/// arranging. Thread-safe. Errors common to all functions: see Repository.
class SeriesVersions {
 public:
  virtual ~SeriesVersions() = default;
  /// Returns sealed and open versions in ascending number. A read-only repository returns only
  /// sealed versions. The sizes of open versions are 0; open_versions() returns them.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<VersionInfo>> versions(SeriesId series) = 0;
  /// Returns the open version, if there is one. A read-only repository also returns the open
  /// version, with the entries and bytes of the last checkpoint, but an attached folder has none.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<VersionInfo>> open_versions(
      SeriesId series, OpenSizes sizes = OpenSizes::kMeasured) = 0;
  /// Returns the version with the name, or the newest sealed version for "latest".
  /// Errors: kNotFound if no version has the name, or none is sealed yet.
  [[nodiscard]] virtual Result<VersionInfo> find_version(SeriesId series,
                                                         std::string_view name) = 0;
  /// Returns the open version that open_version() and clone_version() would seal before opening
  /// `name`, or nullopt if the series has no open version. `source`: the version to clone, for
  /// clone_version(); VersionNumber{} for open_version().
  /// Errors: kBusy if the open version must not be sealed: partial or empty, files open for
  /// writing, writes within OpenOptions::autoseal_s, or autoseal_s is nullopt. Also the errors with
  /// which the two functions would fail after the seal: of the name, of a version that cannot be
  /// reopened, kNoSpace.
  [[nodiscard]] virtual Result<std::optional<VersionInfo>> version_to_end(SeriesId series,
                                                                          std::string_view name,
                                                                          VersionNumber source) = 0;
  /// Seals the version returned by version_to_end(), then opens a new version.
  /// Errors: kBusy as for version_to_end(); kExists if the name is reserved, or taken by a version
  /// or a file beside the versions.
  [[nodiscard]] virtual Result<VersionInfo> open_version(SeriesId series, std::string_view name,
                                                         const NewFile& root) = 0;
  /// Returns the series' open version.
  /// Errors: kNotFound without an open version; kReadOnly if the repository was opened read-only.
  [[nodiscard]] virtual Result<std::shared_ptr<VersionWriter>> writer(SeriesId series) = 0;
  /// Returns a reader of a sealed version.
  /// Errors: kInvalid if the version is open.
  [[nodiscard]] virtual Result<std::shared_ptr<VersionReader>> reader(SeriesId series,
                                                                      VersionNumber number) = 0;
  /// Seals an open version under `new_name`; "" keeps its name, without ".partial". The version is
  /// on disk when the call returns.
  /// Errors: kBusy while files are open for writing, unless `writers` is kCutOff.
  [[nodiscard]] virtual Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                                 std::string_view new_name,
                                                 SealMode mode = SealMode::kEnd,
                                                 SealWriters writers = SealWriters::kRefuse) = 0;
  /// Opens a new version, as open_version() does, with the tree of a sealed version of the series.
  /// The time to clone the newest version does not depend on the size of the tree. Cloning an older
  /// version visits every file, and stores again data that the newest version lacks.
  /// Errors: those of open_version(); kInvalid if the source is open.
  [[nodiscard]] virtual Result<VersionInfo> clone_version(SeriesId series, VersionNumber source,
                                                          std::string_view name) = 0;
  /// Renames a sealed or an open version. A rename cannot add or drop the suffix ".partial".
  /// Errors: kExists if the name is taken or reserved; kNotPermitted or kInvalid if the suffix
  /// would change; kInvalid or kNameTooLong for an invalid name.
  [[nodiscard]] virtual Result<void> rename_version(SeriesId series, VersionNumber number,
                                                    std::string_view new_name) = 0;
  /// Drops an open version.
  /// Errors: kNotEmpty unless its tree is empty or `force` is set.
  [[nodiscard]] virtual Result<void> abandon_version(SeriesId series, VersionNumber number,
                                                     bool force) = 0;
  /// Returns the files of programs beside the versions of a series. Versions cannot have the names
  /// of such files.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::shared_ptr<BesideFiles>> beside(SeriesId series) = 0;

  // ---- Retention and arranging; see varve/retention.h and varve/arrange.h. ----

  /// Returns the effect of delete_versions() for the same set.
  /// Errors: kNotFound if a version does not exist; kInvalid if a version is open
  /// (abandon_version() drops open versions).
  [[nodiscard]] virtual Result<DeletionForecast> forecast_deletion(
      SeriesId series, const std::vector<VersionNumber>& numbers,
      const DeletionOptions& options = {}) = 0;
  /// Deletes sealed versions in one step: all or none, or, with DeletionOptions::skip_held, all
  /// versions not held. Copies no chunk data. The space is free when the call returns. Works on a
  /// full disk.
  /// Errors: those of forecast_deletion(); kNotPermitted before the end of a lock; kBusy while a
  /// version has open files, or is the base of an open version.
  [[nodiscard]] virtual Result<DeletionForecast> delete_versions(
      SeriesId series, const std::vector<VersionNumber>& numbers,
      const DeletionOptions& options = {}) = 0;
  /// Checks whether delete_versions() would delete a sealed version, apart from open files.
  /// Errors: as delete_versions(): kNotPermitted for a lock, kBusy for the base of an open version.
  [[nodiscard]] virtual Result<void> check_deletion(SeriesId series, VersionNumber number) = 0;
  /// Locks a sealed version against deletion until `until`. A lock can only be extended.
  /// Errors: kNotPermitted if the present lock ends later than `until`.
  [[nodiscard]] virtual Result<void> lock_version(SeriesId series, VersionNumber number,
                                                  Timestamp until) = 0;
  /// Returns the sizes of every sealed version, in ascending number. Changes of the series go on
  /// meanwhile; all sizes are of one moment.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<VersionUsage>> version_usage(SeriesId series) = 0;
  /// Returns the sizes of one sealed version.
  /// Errors: the common errors; kNotFound also for an open version.
  [[nodiscard]] virtual Result<VersionUsage> version_usage(SeriesId series,
                                                           VersionNumber number) = 0;
  /// Returns a sealed version's use of the pool: the counts recorded by the seal, and the present
  /// utilisation of the containers.
  /// Errors: the common errors; kNotFound also for an open version.
  [[nodiscard]] virtual Result<PoolUsage> pool_usage(SeriesId series, VersionNumber number) = 0;
  /// Returns the versions with a lock, in ascending number.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<VersionLock>> version_locks(SeriesId series) = 0;
  /// Returns the categories by file, then by birth; categories of the active set come last.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<CategoryInfo>> categories(SeriesId series) = 0;
  /// Returns what the setting ArrangeSettings::delta saves. Reads the headers of all volumes: about
  /// 50 bytes for each chunk.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<DeltaSavings> delta_savings(SeriesId series) = 0;
  /// Returns the work left for the arranger.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<ArrangingDebt> arranging_debt(SeriesId series) = 0;
  /// Arranges a series until the policy has no work left, the caller stops it, or the disk is full.
  /// Runs beside reading and writing. After a crash, the next call repeats the interrupted work.
  /// Errors: the common errors, but not kNoSpace: ArrangeReport::finished is then false.
  [[nodiscard]] virtual Result<ArrangeReport> arrange(SeriesId series,
                                                      const ArrangeOptions& options) = 0;
};

}  // namespace varve
