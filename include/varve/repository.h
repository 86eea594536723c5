// SPDX-License-Identifier: Apache-2.0
// A repository: series of versions in one folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/metrics.h"
#include "varve/options.h"
#include "varve/pool_index.h"
#include "varve/result.h"
#include "varve/rewrite.h"
#include "varve/types.h"
#include "varve/upkeep.h"

namespace varve {

namespace base {
class Metrics;
}  // namespace base
namespace io {
class FileSystem;
}  // namespace io
namespace series {
class Series;
}  // namespace series

// Each header defines the types of one job: include the headers of the program's jobs.
class BesideFiles;         // varve/beside.h
class VersionReader;       // varve/browse.h
class VersionWriter;       // varve/backup.h
struct NewFile;            // varve/backup.h
struct SealOutcome;        // varve/backup.h
struct DeletionForecast;   // varve/retention.h
struct VersionLock;        // varve/retention.h
struct VersionUsage;       // varve/retention.h
struct ArrangeOptions;     // varve/arrange.h
struct ArrangeReport;      // varve/arrange.h
struct ArrangeSettings;    // varve/arrange.h
struct ArrangingDebt;      // varve/arrange.h
struct CatalogCompaction;  // varve/arrange.h
struct CategoryInfo;       // varve/arrange.h
struct CheckOptions;       // varve/check.h
struct CheckProgress;      // varve/check.h
struct CheckReport;        // varve/check.h
struct ScrubOptions;       // varve/check.h
struct ScrubReport;        // varve/check.h
struct EarlierCheck;       // varve/check.h
struct LostFiles;          // varve/check.h
struct RefusedStore;       // varve/refused_store.h
enum class RefusalReason : std::uint8_t;

/// Whether Repository::open_versions() measures the open version. Measuring opens files, so that a
/// list of many open versions takes time.
enum class OpenSizes : std::uint8_t {
  kMeasured,
  kUnknown,  ///< The sizes are 0.
};

/// Called while a check runs.
using CheckObserver = std::function<void(const CheckProgress&)>;

/// Sizes of a repository, all in bytes unless the name says otherwise.
struct RepositoryStats {
  std::uint64_t series = 0;
  std::uint64_t versions_sealed = 0;
  std::uint64_t versions_open = 0;
  std::uint64_t logical_bytes = 0;     ///< Sum over the sealed versions.
  std::uint64_t unique_bytes = 0;      ///< Raw bytes of all stored chunks.
  std::uint64_t frame_bytes = 0;       ///< Stored bytes of the same chunks, after compression.
  std::uint64_t container_bytes = 0;   ///< Frames with headers, tables and padding.
  std::uint64_t pool_bytes = 0;        ///< The part of `container_bytes` in the pool.
  std::uint64_t pool_aliases = 0;      ///< Duplicates in the pool whose content is stored once.
  std::uint64_t pool_alias_bytes = 0;  ///< Raw bytes of the aliases.
  std::uint64_t pool_new_bytes = 0;    ///< Raw bytes in the pool not yet compared for duplicates.
  std::uint64_t containers = 0;
  std::uint64_t chunks = 0;
  std::uint64_t catalog_bytes = 0;       ///< Files under catalog/.
  std::uint64_t index_bytes = 0;         ///< Snapshots of the neighbour indexes.
  std::uint64_t staging_bytes = 0;       ///< Overlays of open versions.
  std::uint64_t parity_bytes = 0;        ///< Parity files.
  std::uint64_t catalog_free_bytes = 0;  ///< Free pages of the catalog, part of `catalog_bytes`.
  std::uint64_t manifest_bytes = 0;      ///< Manifests and labels.
  std::uint64_t reserve_bytes = 0;       ///< Space for deleting and sealing on a full disk.
  std::uint64_t repository_bytes = 0;    ///< All files of the repository.
  std::uint64_t sequence = 0;            ///< See Repository::sequence(); 0 if there is none.
};

/// An opened repository. Thread-safe. At most one process can open a repository for writing; any
/// number of processes can read at the same time.
///
/// Common errors, of each function: kNotFound if the series or version does not exist; kReadOnly
/// for a change to a repository opened read-only; kNoSpace if the disk is too full for a change;
/// kCorrupt if needed metadata is damaged; kIo if the operating system reports an error.
class Repository {
 public:
  /// Creates a repository in `path`, with the folders above. `path` must be empty or absent.
  /// Errors: kInvalid or kUnsupported for parameters or keys out of range; kExists if `path` is a
  /// repository; kNotEmpty if `path` has other files; kIo if the folder cannot be made.
  [[nodiscard]] static Result<void> create(const std::string& path,
                                           const RepositoryParameters& parameters,
                                           const CreateOptions& options = {});
  /// Opens a repository. The caller must not open a repository already open in the same process:
  /// the catalog's locks belong to the process.
  /// Errors: kNoRepository if `path` has no repository; kUnsupported for a newer format; kCorrupt;
  /// kLocked if another process writes to the repository; kNotPermitted if the repository's owner
  /// is not trusted; kWrongKey without the key of an encrypted repository.
  [[nodiscard]] static Result<std::unique_ptr<Repository>> open(const std::string& path,
                                                                const OpenOptions& options);
  virtual ~Repository() = default;

  /// Stops background work and makes open versions durable. Call close() before destruction to
  /// learn of errors.
  /// Errors: those of sync().
  [[nodiscard]] virtual Result<void> close() = 0;

  /// Closes the repository as close() does, and replaces the catalog by a new file with only the
  /// used pages; close() does so if more than half of the pages are free. Only reads may follow.
  /// Errors: kBusy if another process reads the repository; kNoSpace; those of close(). The catalog
  /// then stays unchanged.
  [[nodiscard]] virtual Result<CatalogCompaction> compact_catalog() = 0;

  /// Makes all open versions durable. The error message names each failed version, and the data
  /// that a crash would lose.
  /// Errors: the code of the first failure.
  [[nodiscard]] virtual Result<void> sync() = 0;

  /// Returns the path given to open().
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// Returns the present path of the repository's folder: the folder may have been moved since
  /// open().
  [[nodiscard]] virtual std::string present_path() = 0;
  /// Returns true if the repository was opened read-only.
  [[nodiscard]] virtual bool read_only() const = 0;
  /// Returns the repository's id: 32 hexadecimal digits, random and fixed.
  [[nodiscard]] virtual std::string id() const = 0;
  /// Returns the sequence number of an encrypted repository, incremented by each seal, deletion,
  /// renaming, lock and change of settings or keys; nullopt for a plain repository. A number below
  /// an earlier number reveals a rollback of the repository to an older state.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::optional<std::uint64_t>> sequence() = 0;
  /// Returns the parameters fixed when the repository was created.
  [[nodiscard]] virtual const RepositoryParameters& parameters() const = 0;

  /// Returns all series.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::vector<SeriesInfo>> series() = 0;
  /// Returns the series with a name.
  /// Errors: kNotFound.
  [[nodiscard]] virtual Result<SeriesInfo> find_series(std::string_view name) = 0;
  /// Creates an empty series.
  /// Errors: kExists if the name is taken; kInvalid or kNameTooLong for an invalid name;
  /// kUnsupported for settings unknown to the build.
  [[nodiscard]] virtual Result<SeriesInfo> create_series(std::string_view name,
                                                         const SeriesOptions& options) = 0;
  /// Creates an empty series with the repository's defaults.
  /// Errors: as the function above.
  [[nodiscard]] Result<SeriesInfo> create_series(std::string_view name) {
    return create_series(name, SeriesOptions());
  }
  /// Changes settings of a series, for versions opened later. Returns the settings.
  /// Errors: kNotFound; kBusy for another placement while a version of the series is open;
  /// kUnsupported for settings unknown to the build.
  [[nodiscard]] virtual Result<SeriesSettings> change_series(SeriesId series,
                                                             const SeriesOptions& changes) = 0;
  /// Returns the settings of new series.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<SeriesSettings> series_defaults() = 0;
  /// Changes the settings of new series. Returns the changed settings.
  /// Errors: kUnsupported for settings unknown to the build.
  [[nodiscard]] virtual Result<SeriesSettings> change_series_defaults(
      const SeriesOptions& changes) = 0;
  /// Returns the index chosen for the pool.
  /// Errors: kUnsupported for an index unknown to the build.
  [[nodiscard]] virtual Result<PoolIndexChoice> pool_index() = 0;
  /// Chooses the index of the pool. The present process keeps its opened index. The next process to
  /// open the repository builds the chosen index from the containers, and uses the chosen index.
  /// Errors: kUnsupported for an index unknown to the build.
  [[nodiscard]] virtual Result<void> set_pool_index(const PoolIndexChoice& choice) = 0;
  /// Returns the defaults for arranging and pruning.
  /// Errors: kUnsupported for settings of a newer Varve.
  [[nodiscard]] virtual Result<UpkeepSettings> upkeep_settings() = 0;
  /// Stores the defaults for arranging and pruning. Background arranging uses a changed rate from
  /// the next arranging on.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<void> set_upkeep_settings(const UpkeepSettings& settings) = 0;
  /// Returns the last refused store into a series; nullopt if there was none, or if a newer version
  /// was sealed since then.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::optional<RefusedStore>> refused_store(SeriesId series) = 0;
  /// Records a refused store into a series, at the present time.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<void> note_refused_store(SeriesId series, RefusalReason reason) = 0;
  /// Replaces the key slots of an encrypted repository by the key slots of a changed text of
  /// `varve.repo`. KeySlots::open_beside() makes such texts.
  /// Errors: kCorrupt for a text not written with the keys, and for the text of another repository;
  /// kBusy if the text does not follow the present slots; kNotPermitted if the repository is plain,
  /// and without a key beside recovery codes.
  [[nodiscard]] virtual Result<void> adopt_keys(std::string_view superblock) = 0;
  /// Renames a series.
  /// Errors: kExists if the name is taken; kInvalid or kNameTooLong for an invalid name; kBusy
  /// while a version of the series is open.
  [[nodiscard]] virtual Result<void> rename_series(SeriesId series, std::string_view new_name) = 0;
  /// Returns the streams of the pool's index in the present process. Returns none before a version
  /// uses the index, or with another index than `stream`.
  /// Errors: those of reading the catalog.
  [[nodiscard]] virtual Result<std::vector<PoolStream>> pool_streams() = 0;
  /// Removes an empty series.
  /// Errors: kNotEmpty if the series has versions or files beside versions.
  [[nodiscard]] Result<void> remove_series(std::string_view name);

  /// Returns sealed and open versions in ascending number. A read-only repository returns only
  /// sealed versions. The sizes of open versions are 0; open_versions() returns them.
  /// Errors: the common errors.
  [[nodiscard]] Result<std::vector<VersionInfo>> versions(SeriesId series);
  /// Returns the open version, if there is one. A read-only repository also returns the open
  /// version, with the entries and bytes of the last checkpoint, but an attached folder has none.
  /// Errors: the common errors.
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(
      SeriesId series, OpenSizes sizes = OpenSizes::kMeasured);
  /// Returns the version with the name, or the newest sealed version for "latest".
  /// Errors: kNotFound if no version has the name, or none is sealed yet.
  [[nodiscard]] Result<VersionInfo> find_version(SeriesId series, std::string_view name);

  /// Returns the open version that open_version() and clone_version() would seal before opening
  /// `name`, or nullopt if the series has no open version. `source`: the version to clone, for
  /// clone_version(); VersionNumber{} for open_version().
  /// Errors: kBusy if the open version must not be sealed: partial or empty, files open for
  /// writing, writes within OpenOptions::autoseal_s, or autoseal_s is nullopt. Also the errors with
  /// which the two functions would fail after the seal: of the name, of a version that cannot be
  /// reopened, kNoSpace.
  [[nodiscard]] Result<std::optional<VersionInfo>> version_to_end(SeriesId series,
                                                                  std::string_view name,
                                                                  VersionNumber source);
  /// Seals the version returned by version_to_end(), then opens a new version.
  /// Errors: kBusy as for version_to_end(); kExists if the name is reserved, or taken by a version
  /// or a file beside the versions.
  [[nodiscard]] Result<VersionInfo> open_version(SeriesId series, std::string_view name,
                                                 const NewFile& root);
  /// Returns the series' open version.
  /// Errors: kNotFound without an open version; kReadOnly if the repository was opened read-only.
  [[nodiscard]] Result<std::shared_ptr<VersionWriter>> writer(SeriesId series);
  /// Returns a reader of a sealed version.
  /// Errors: kInvalid if the version is open.
  [[nodiscard]] Result<std::shared_ptr<VersionReader>> reader(SeriesId series,
                                                              VersionNumber number);

  /// Seals an open version under `new_name`; "" keeps its name, without ".partial". The version is
  /// on disk when the call returns.
  /// Errors: kBusy while files are open for writing, unless `writers` is kCutOff.
  [[nodiscard]] Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode = SealMode::kEnd,
                                         SealWriters writers = SealWriters::kRefuse);
  /// Opens a new version, as open_version() does, with the tree of a sealed version of the series.
  /// The time to clone the newest version does not depend on the size of the tree. Cloning an older
  /// version visits every file, and stores again data that the newest version lacks.
  /// Errors: those of open_version(); kInvalid if the source is open.
  [[nodiscard]] Result<VersionInfo> clone_version(SeriesId series, VersionNumber source,
                                                  std::string_view name);
  /// Renames a sealed or an open version. A rename cannot add or drop the suffix ".partial".
  /// Errors: kExists if the name is taken or reserved; kNotPermitted or kInvalid if the suffix
  /// would change; kInvalid or kNameTooLong for an invalid name.
  [[nodiscard]] Result<void> rename_version(SeriesId series, VersionNumber number,
                                            std::string_view new_name);
  /// Drops an open version.
  /// Errors: kNotEmpty unless its tree is empty or `force` is set.
  [[nodiscard]] Result<void> abandon_version(SeriesId series, VersionNumber number, bool force);

  /// Returns the files of programs beside the versions of a series. Versions cannot have the names
  /// of such files.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<std::shared_ptr<BesideFiles>> beside(SeriesId series) = 0;

  // ---- Retention and arranging; see varve/retention.h and varve/arrange.h. ----

  /// Returns the effect of delete_versions() for the same set.
  /// Errors: kNotFound if a version does not exist; kInvalid if a version is open
  /// (abandon_version() drops open versions).
  [[nodiscard]] Result<DeletionForecast> forecast_deletion(
      SeriesId series, const std::vector<VersionNumber>& numbers,
      const DeletionOptions& options = {});
  /// Deletes sealed versions in one step: all or none, or, with DeletionOptions::skip_held, all
  /// versions not held. Copies no chunk data. The space is free when the call returns. Works on a
  /// full disk.
  /// Errors: those of forecast_deletion(); kNotPermitted before the end of a lock; kBusy while a
  /// version has open files, or is the base of an open version.
  [[nodiscard]] Result<DeletionForecast> delete_versions(SeriesId series,
                                                         const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options = {});
  /// Checks whether delete_versions() would delete a sealed version, apart from open files.
  /// Errors: as delete_versions(): kNotPermitted for a lock, kBusy for the base of an open version.
  [[nodiscard]] Result<void> check_deletion(SeriesId series, VersionNumber number);
  /// Locks a sealed version against deletion until `until`. A lock can only be extended.
  /// Errors: kNotPermitted if the present lock ends later than `until`.
  [[nodiscard]] Result<void> lock_version(SeriesId series, VersionNumber number, Timestamp until);
  /// Returns the sizes of every sealed version, in ascending number. Changes of the series go on
  /// meanwhile; all sizes are of one moment.
  /// Errors: the common errors.
  [[nodiscard]] Result<std::vector<VersionUsage>> version_usage(SeriesId series);
  /// Returns the sizes of one sealed version.
  /// Errors: the common errors; kNotFound also for an open version.
  [[nodiscard]] Result<VersionUsage> version_usage(SeriesId series, VersionNumber number);
  /// Returns a sealed version's use of the pool: the counts recorded by the seal, and the present
  /// utilisation of the containers.
  /// Errors: the common errors; kNotFound also for an open version.
  [[nodiscard]] Result<PoolUsage> pool_usage(SeriesId series, VersionNumber number);
  /// Returns the versions with a lock, in ascending number.
  /// Errors: the common errors.
  [[nodiscard]] Result<std::vector<VersionLock>> version_locks(SeriesId series);
  /// Returns the categories by file, then by birth; categories of the active set come last.
  /// Errors: the common errors.
  [[nodiscard]] Result<std::vector<CategoryInfo>> categories(SeriesId series);
  /// Returns the work left for the arranger.
  /// Errors: the common errors.
  [[nodiscard]] Result<ArrangingDebt> arranging_debt(SeriesId series);
  /// Returns the settings of the arranger.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<ArrangeSettings> arrange_settings() = 0;
  /// Stores new settings of the arranger.
  /// Errors: kInvalid if a value is out of its range.
  [[nodiscard]] virtual Result<void> set_arrange_settings(const ArrangeSettings& settings) = 0;
  /// Arranges a series until the policy has no work left, the caller stops it, or the disk is full.
  /// Runs beside reading and writing. After a crash, the next call repeats the interrupted work.
  /// Errors: the common errors, but not kNoSpace: ArrangeReport::finished is then false.
  [[nodiscard]] virtual Result<ArrangeReport> arrange(SeriesId series,
                                                      const ArrangeOptions& options) = 0;

  // ---- Checking; see varve/check.h. ----

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

  /// Returns the sizes of the repository.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<RepositoryStats> stats() = 0;
  /// Returns the size and the free space of the disk below the repository.
  /// Errors: kIo.
  [[nodiscard]] virtual Result<SpaceInfo> space() = 0;
  /// Returns the present values of all metrics of the process, in a fixed order. Reads no disk.
  [[nodiscard]] std::vector<MetricSample> metrics();
  /// Returns the registry of the metrics, to which a mount adds its request metrics.
  /// Lifetime: until the repository is destroyed.
  [[nodiscard]] virtual base::Metrics& metrics_registry() = 0;
  /// Returns the access to the repository's disk, for parts of Varve that keep derived data there.
  /// Lifetime: until the repository is destroyed.
  [[nodiscard]] virtual io::FileSystem& file_system() = 0;
  /// Returns a number that changes when `varve repair` marks more chunks of the series as lost; 0
  /// without lost chunks.
  /// Errors: the common errors.
  [[nodiscard]] Result<std::uint64_t> lost_chunks_stamp(SeriesId series);

 protected:
  /// Returns a series. The pointer stays valid until the repository is destroyed.
  /// Errors: kNotFound if the series does not exist.
  [[nodiscard]] virtual Result<series::Series*> find(SeriesId series) = 0;
};

}  // namespace varve
