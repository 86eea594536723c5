// SPDX-License-Identifier: Apache-2.0
// Connects the rooms of one repository. No other place builds their objects.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "catalog/clock_record.h"
#include "catalog/object_set.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "format/superblock.h"
#include "index/neighbour_index.h"
#include "ingest/chunker.h"
#include "io/file_system.h"
#include "layout/category_layout.h"
#include "layout/deletion.h"
#include "maintain/manifest_file.h"
#include "meta/lmdb.h"
#include "repo/disk_costs.h"
#include "restore/read_service.h"
#include "store/space_guard.h"
#include "varve/repository.h"
#include "version/open_version.h"
#include "version/sealed_version.h"

namespace varve::repo {

/// Implements Repository. Thread-safe. Lock order: a series' mutex, then mutex_.
class RepositoryImpl final : public Repository {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Repository>> open(const std::string& path,
                                                                const OpenOptions& options);
  ~RepositoryImpl() override;

  [[nodiscard]] Result<void> close() override;
  [[nodiscard]] Result<void> sync() override;
  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] std::string present_path() override;
  [[nodiscard]] bool read_only() const override { return options_.read_only; }
  [[nodiscard]] const RepositoryParameters& parameters() const override {
    return superblock_.parameters;
  }
  [[nodiscard]] Result<std::vector<SeriesInfo>> series() override;
  [[nodiscard]] Result<SeriesInfo> find_series(std::string_view name) override;
  [[nodiscard]] Result<SeriesInfo> create_series(std::string_view name) override;
  [[nodiscard]] Result<void> remove_series(std::string_view name) override;
  [[nodiscard]] Result<std::vector<VersionInfo>> versions(SeriesId series) override;
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(SeriesId series) override;
  [[nodiscard]] Result<VersionInfo> find_version(SeriesId series, std::string_view name) override;
  [[nodiscard]] Result<std::optional<VersionInfo>> version_to_end(SeriesId series,
                                                                  std::string_view name,
                                                                  VersionNumber source) override;
  [[nodiscard]] Result<VersionInfo> open_version(SeriesId series, std::string_view name,
                                                 const NewFile& root) override;
  [[nodiscard]] Result<std::shared_ptr<VersionWriter>> writer(SeriesId series) override;
  [[nodiscard]] Result<std::shared_ptr<VersionReader>> reader(SeriesId series,
                                                              VersionNumber number) override;
  [[nodiscard]] Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode,
                                         SealWriters writers) override;
  [[nodiscard]] Result<VersionInfo> clone_version(SeriesId series, VersionNumber source,
                                                  std::string_view name) override;
  [[nodiscard]] Result<void> rename_version(SeriesId series, VersionNumber number,
                                            std::string_view new_name) override;
  [[nodiscard]] Result<void> abandon_version(SeriesId series, VersionNumber number,
                                             bool force) override;
  [[nodiscard]] Result<DeletionForecast> forecast_deletion(
      SeriesId series, const std::vector<VersionNumber>& numbers,
      const DeletionOptions& options) override;
  [[nodiscard]] Result<DeletionForecast> delete_versions(SeriesId series,
                                                         const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options) override;
  [[nodiscard]] Result<void> lock_version(SeriesId series, VersionNumber number,
                                          Timestamp until) override;
  [[nodiscard]] Result<std::vector<VersionUsage>> version_usage(SeriesId series) override;
  [[nodiscard]] Result<std::vector<CategoryInfo>> categories(SeriesId series) override;
  [[nodiscard]] Result<ArrangingDebt> arranging_debt(SeriesId series) override;
  [[nodiscard]] Result<ArrangeSettings> arrange_settings() override;
  [[nodiscard]] Result<void> set_arrange_settings(const ArrangeSettings& settings) override;
  [[nodiscard]] Result<ArrangeReport> arrange(SeriesId series,
                                              const ArrangeOptions& options) override;
  [[nodiscard]] Result<RepositoryStats> stats() override;
  [[nodiscard]] Result<SpaceInfo> space() override;

  // For check_repository().
  [[nodiscard]] const meta::Env& catalog() const { return catalog_; }
  [[nodiscard]] io::FileSystem& files() { return *files_; }

 private:
  /// In-memory state of one series. It stays until the repository is closed.
  struct SeriesState {
    std::mutex mutex;         // Serialises opening, sealing and abandoning versions.
    std::mutex parity_mutex;  // Held while parity is made; innermost.
    std::unique_ptr<layout::CategoryLayout> layout;
    std::unique_ptr<catalog::ObjectReader> objects;
    std::shared_ptr<version::OpenVersion> open;
    std::shared_ptr<index::NeighbourIndex> index;
    std::map<VersionNumber, std::weak_ptr<version::SealedVersion>> readers;
    std::map<VersionNumber, std::shared_ptr<version::OpenFiles>> open_files;
  };

  RepositoryImpl(std::string path, const OpenOptions& options, format::Superblock superblock,
                 std::unique_ptr<io::FileSystem> files, std::unique_ptr<io::FileLock> lock,
                 meta::Env catalog);
  [[nodiscard]] Result<void> start();

  [[nodiscard]] Result<SeriesState*> state(SeriesId series);
  [[nodiscard]] std::string series_directory(SeriesId series) const;
  [[nodiscard]] std::string staging_directory(SeriesId series, VersionNumber number) const;
  /// Removes the staging folder of a version that is no longer open.
  [[nodiscard]] Result<void> remove_staging(const catalog::VersionRecord& record);
  [[nodiscard]] Result<void> remove_leftover_staging(const std::vector<std::string>& wanted);
  [[nodiscard]] Result<void> check_writable() const;
  [[nodiscard]] Result<catalog::SeriesRecord> series_record(SeriesId series);
  [[nodiscard]] Result<catalog::VersionRecord> version_record(SeriesId series,
                                                              VersionNumber number);
  [[nodiscard]] Result<void> check_new_name(SeriesId series, std::string_view name);
  [[nodiscard]] Result<void> check_may_open(SeriesId series, std::string_view name);
  [[nodiscard]] Result<std::optional<catalog::VersionRecord>> newest_sealed(SeriesId series);

  // The caller must hold the series' mutex:
  [[nodiscard]] Result<void> drop_leftovers(SeriesState& state,
                                            const catalog::VersionRecord& record);
  [[nodiscard]] Result<void> resume(SeriesState& state, const catalog::VersionRecord& record);
  /// Returns kBusy if the open version must not be sealed to open another one.
  [[nodiscard]] Result<void> check_may_end(SeriesState& state,
                                           const catalog::VersionRecord& record);
  /// Seals the present open version, to allow another one.
  /// Errors: kBusy if it must not be sealed.
  [[nodiscard]] Result<void> end_present_version(SeriesState& state, SeriesId series);
  /// Sets the number of a new open version and commits its record.
  [[nodiscard]] Result<VersionInfo> put_new_version(catalog::VersionRecord& record);
  [[nodiscard]] Result<std::shared_ptr<const version::CloneBase>> load_base(
      SeriesState& state, const catalog::VersionRecord& record);
  [[nodiscard]] Result<VersionInfo> copy_version(SeriesState& state,
                                                 const catalog::VersionRecord& source,
                                                 std::string_view name);
  [[nodiscard]] Result<void> drop_unfinished(SeriesState& state,
                                             const catalog::VersionRecord& record);
  /// Returns kCorrupt if an open version's staging is missing: it must not count as an empty
  /// version.
  [[nodiscard]] Result<void> check_staging(const catalog::VersionRecord& record);
  [[nodiscard]] Result<std::shared_ptr<index::NeighbourIndex>> load_index(
      SeriesState& state, const catalog::VersionRecord& record);
  [[nodiscard]] Result<void> add_to_index(SeriesState& state, index::NeighbourIndex& index,
                                          SeriesId series, const base::IdRuns& ids);
  [[nodiscard]] Result<void> check_may_reopen(const catalog::VersionRecord& record);
  /// A sealed version to be cloned, and its clone's name.
  struct CloneSource {
    catalog::VersionRecord record;
    bool reopens = false;  ///< The clone is to take the source's place.
    std::string own_name;  ///< While a version is reopened, its name with ".partial".
  };
  /// Errors: those with which clone_version() would fail after it has sealed another version.
  [[nodiscard]] Result<CloneSource> clone_source(SeriesId series, VersionNumber source,
                                                 std::string_view name);
  /// Seals a version. Sets `replaced` if the seal took the name of another version, which the
  /// caller must then delete.
  [[nodiscard]] Result<SealOutcome> seal_locked(SeriesState& state, catalog::VersionRecord record,
                                                std::string_view new_name, SealMode mode,
                                                SealWriters writers = SealWriters::kRefuse,
                                                std::optional<VersionNumber>* replaced = nullptr);
  /// Commits a seal. `next`: the open version that continues, or null; gets its number here.
  /// `replaced`: a record that gets another name in this commit, or null.
  [[nodiscard]] Result<void> commit_seal(SeriesState& state, catalog::VersionRecord& record,
                                         catalog::VersionRecord* next,
                                         const catalog::VersionRecord* replaced,
                                         SealOutcome& outcome);
  /// Returns the chunks that an open version may refer to besides its own. The first call records
  /// them.
  [[nodiscard]] Result<base::IdRuns> open_window(const catalog::VersionRecord& record);
  /// Saves the index of the next version's window, before the seal's commit. Returns true for a
  /// side version.
  [[nodiscard]] Result<bool> save_window(SeriesState& state, const catalog::VersionRecord& record,
                                         const base::IdRuns& chunks);
  [[nodiscard]] std::shared_ptr<version::OpenFiles> open_files(SeriesState& state,
                                                               VersionNumber number);

  // Deletion, in repository_deletion.cc. The caller must hold the series' mutex.
  [[nodiscard]] Result<std::vector<catalog::VersionRecord>> records_to_delete(
      SeriesId series, const std::vector<VersionNumber>& numbers);
  /// Returns the lock that keeps a version from being deleted, as an error; nullopt without one.
  [[nodiscard]] Result<std::optional<Error>> lock_of(const meta::Txn& txn,
                                                     const catalog::VersionRecord& record,
                                                     bool force_clock);
  /// Returns the reason why a version must not be deleted: its lock, or an open version based on
  /// it.
  [[nodiscard]] Result<std::optional<Error>> holder_of(const catalog::VersionRecord& record,
                                                       const DeletionOptions& options);
  /// Removes held versions from `gone` and returns them. Without `options.skip_held`, fails at the
  /// first one. Calls `has_files` for each version that nothing else holds.
  [[nodiscard]] Result<std::vector<HeldVersion>> leave_out_held(
      std::vector<catalog::VersionRecord>& gone, const DeletionOptions& options,
      const std::function<bool(const catalog::VersionRecord&)>& has_files);
  [[nodiscard]] Result<DeletionForecast> forecast(const layout::DeletionPlan& plan,
                                                  const std::vector<catalog::VersionRecord>& gone,
                                                  std::optional<VersionNumber>& snapshot);
  [[nodiscard]] Result<DeletionForecast> delete_locked(
      SeriesState& state, const std::vector<catalog::VersionRecord>& gone);
  /// Chunks that open versions may refer to, by version number.
  using OpenChunks = std::map<VersionNumber, base::IdRuns>;
  [[nodiscard]] Result<void> commit_deletion(const layout::DeletionPlan& plan,
                                             const std::vector<catalog::VersionRecord>& gone,
                                             const catalog::ObjectSet& objects,
                                             const OpenChunks& open);
  /// Returns the chunks that the series' open version refers to. With `dying`, prevents new
  /// references to these chunks from now on. If the references are unknown, all chunks that the
  /// open version may refer to stay.
  [[nodiscard]] layout::OpenHold open_hold(SeriesState& state, SeriesId series,
                                           const base::IdRuns* dying);
  /// Returns the open version's record without the dead chunks; nothing if it does not change.
  [[nodiscard]] Result<OpenChunks> open_record_after(const meta::Txn& txn, SeriesId series,
                                                     const layout::DeletionPlan& plan);
  /// Runs `work`. If the disk is full, releases the reserve and runs it again.
  [[nodiscard]] Result<void> with_reserve(const std::function<Result<void>()>& work);

  // Manifests and labels, docs/ORDERING.md O19 to O22. repository_manifests.cc.
  struct DeadManifests {
    std::vector<VersionNumber> numbers;
    std::uint64_t bytes = 0;  ///< Size of the files, plus the decrease in the labels' size.
  };
  [[nodiscard]] Result<void> check_catalog_age();
  [[nodiscard]] Result<void> complete_manifests();
  [[nodiscard]] Result<void> complete_manifests_of(SeriesId series);
  /// Starts a manifest and adds `objects` objects of the version. The caller must add the records.
  [[nodiscard]] Result<std::unique_ptr<maintain::ManifestWriter>> begin_manifest(
      const catalog::VersionRecord& record, std::uint64_t objects);
  /// Writes the manifest of a sealed version again after a change to its lock (O27).
  void rewrite_manifest(const catalog::VersionRecord& record);
  /// Returns the manifests that are unused without the versions `gone`.
  [[nodiscard]] Result<DeadManifests> dead_manifests(
      SeriesId series, const std::vector<catalog::VersionRecord>& gone,
      const OpenChunks& open = {});
  /// Removes dead manifests. Call it after the commit that made them dead.
  void drop_manifests(SeriesId series, const DeadManifests& dead);
  /// Writes the labels. Call it after each commit that changes their content.
  void sync_labels(SeriesId series);
  void sync_all_labels();
  [[nodiscard]] std::unique_ptr<catalog::ObjectReader> objects_of(SeriesId series);

  // Arranging. repository_arrange.cc.
  void arrange_soon(SeriesId series);
  /// Arranges after the opening, because an earlier process may have stopped or skipped the work.
  void arrange_what_is_owed();
  void arrange_in_background(const ArrangeOptions& options);
  /// Whether arranging gives way to writers.
  enum class Pace { kAtOnce, kBackground };
  [[nodiscard]] Result<bool> arrange_series(SeriesId series, const ArrangeOptions& options,
                                            Pace pace, ArrangeProgress& done);
  /// Makes missing parity of an arranged series and removes unused parity. Logs a full disk or
  /// damage. Returns false if stopped.
  [[nodiscard]] Result<bool> protect_series(SeriesId series, const ArrangeOptions& options,
                                            ArrangeProgress& done);
  void stop_arranging();

  /// Chooses the seal time. Returns the clock's record to commit with the seal.
  [[nodiscard]] Result<catalog::ClockRecord> choose_seal_time(catalog::VersionRecord& record,
                                                              std::string& warning);
  [[nodiscard]] Result<void> measure_version(catalog::VersionRecord& record);
  [[nodiscard]] Result<void> measure_open(catalog::VersionRecord& record);
  void end_open_version(SeriesState& state, const catalog::VersionRecord& record);

  const std::string path_;
  const OpenOptions options_;
  const format::Superblock superblock_;
  const std::unique_ptr<io::FileSystem> files_;
  const std::unique_ptr<io::FileLock> lock_;
  meta::Env catalog_;
  base::SystemClock clock_;
  store::SpaceGuard space_;
  std::unique_ptr<ingest::Chunker> chunker_;
  std::unique_ptr<base::ThreadPool> compressors_;
  std::unique_ptr<base::ThreadPool> fingerprint_pool_;
  std::unique_ptr<restore::ReadService> read_service_;
  std::unique_ptr<DiskCosts> disk_costs_;

  std::mutex arrange_mutex_;  // Guards the members up to arranger_; innermost.
  std::condition_variable_any arrange_wake_;
  std::set<SeriesId> to_arrange_;
  std::jthread arranger_;

  std::mutex labels_mutex_;  // Held while labels are written; innermost.

  std::mutex mutex_;
  std::map<SeriesId, std::unique_ptr<SeriesState>> states_;
  std::string seen_path_;          // present_path() as it was last logged; empty at first.
  std::uint32_t next_series_ = 1;  // Ids are not reused, because the states of removed series stay.
};

}  // namespace varve::repo
