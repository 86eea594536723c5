// SPDX-License-Identifier: Apache-2.0
// The only place that builds objects: wires the rooms of one repository together.
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

/// Thread-safe. Lock order: a series' mutex, then mutex_.
class RepositoryImpl final : public Repository {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Repository>> open(const std::string& path,
                                                                const OpenOptions& options);
  ~RepositoryImpl() override;

  [[nodiscard]] Result<void> close() override;
  [[nodiscard]] Result<void> sync() override;
  [[nodiscard]] const std::string& path() const override { return path_; }
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
  [[nodiscard]] Result<std::optional<VersionInfo>> version_to_end(SeriesId series) override;
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
  /// What is in memory of one series. Stays until the repository is closed.
  struct SeriesState {
    std::mutex mutex;         // Opening, sealing and abandoning versions: one at a time.
    std::mutex parity_mutex;  // Held by who makes parity; innermost.
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
  /// Removes the staging folder of a version that is not open any more.
  [[nodiscard]] Result<void> remove_staging(const catalog::VersionRecord& record);
  [[nodiscard]] Result<void> remove_leftover_staging(const std::vector<std::string>& wanted);
  [[nodiscard]] Result<void> check_writable() const;
  [[nodiscard]] Result<catalog::SeriesRecord> series_record(SeriesId series);
  [[nodiscard]] Result<catalog::VersionRecord> version_record(SeriesId series,
                                                              VersionNumber number);
  [[nodiscard]] Result<void> check_new_name(SeriesId series, std::string_view name);
  [[nodiscard]] Result<std::optional<catalog::VersionRecord>> newest_sealed(SeriesId series);

  // With the series' mutex held:
  [[nodiscard]] Result<void> drop_leftovers(SeriesState& state,
                                            const catalog::VersionRecord& record);
  [[nodiscard]] Result<void> resume(SeriesState& state, const catalog::VersionRecord& record);
  /// kBusy if the open version must not be sealed for another one to be opened.
  [[nodiscard]] Result<void> check_may_end(SeriesState& state,
                                           const catalog::VersionRecord& record);
  /// Makes room for another open version: seals the present one, or kBusy.
  [[nodiscard]] Result<void> end_present_version(SeriesState& state, SeriesId series);
  /// Commits the record of a new open version, after giving it its number.
  [[nodiscard]] Result<VersionInfo> put_new_version(catalog::VersionRecord& record);
  [[nodiscard]] Result<std::shared_ptr<const version::CloneBase>> load_base(
      SeriesState& state, const catalog::VersionRecord& record);
  [[nodiscard]] Result<VersionInfo> copy_version(SeriesState& state,
                                                 const catalog::VersionRecord& source,
                                                 std::string_view name);
  [[nodiscard]] Result<void> drop_unfinished(SeriesState& state,
                                             const catalog::VersionRecord& record);
  /// kCorrupt if what an open version held is gone: it must not be taken for an empty one.
  [[nodiscard]] Result<void> check_staging(const catalog::VersionRecord& record);
  [[nodiscard]] Result<std::shared_ptr<index::NeighbourIndex>> load_index(
      SeriesState& state, const catalog::VersionRecord& record);
  [[nodiscard]] Result<void> add_to_index(SeriesState& state, index::NeighbourIndex& index,
                                          SeriesId series, const base::IdRuns& ids);
  [[nodiscard]] Result<void> check_may_reopen(const catalog::VersionRecord& record);
  /// `replaced` is set if the seal took the name of another version, which is to be deleted.
  [[nodiscard]] Result<SealOutcome> seal_locked(SeriesState& state, catalog::VersionRecord record,
                                                std::string_view new_name, SealMode mode,
                                                SealWriters writers = SealWriters::kRefuse,
                                                std::optional<VersionNumber>* replaced = nullptr);
  /// `next`: the version that goes on, or null; it gets its number here. `replaced`: a record that
  /// gets another name with this commit, or null.
  [[nodiscard]] Result<void> commit_seal(SeriesState& state, catalog::VersionRecord& record,
                                         catalog::VersionRecord* next,
                                         const catalog::VersionRecord* replaced,
                                         SealOutcome& outcome);
  /// The chunks that an open version may refer to beside its own; recorded at the first call.
  [[nodiscard]] Result<base::IdRuns> open_window(const catalog::VersionRecord& record);
  /// Before the sealing commit: the index of the next version's window. True for a side version.
  [[nodiscard]] Result<bool> save_window(SeriesState& state, const catalog::VersionRecord& record,
                                         const base::IdRuns& chunks);
  [[nodiscard]] std::shared_ptr<version::OpenFiles> open_files(SeriesState& state,
                                                               VersionNumber number);

  // Deletion; the series' mutex is held. repository_deletion.cc.
  [[nodiscard]] Result<std::vector<catalog::VersionRecord>> records_to_delete(
      SeriesId series, const std::vector<VersionNumber>& numbers);
  /// Returns the lock that keeps a version from being deleted, as an error; nullopt without one.
  [[nodiscard]] Result<std::optional<Error>> lock_of(const meta::Txn& txn,
                                                     const catalog::VersionRecord& record,
                                                     bool force_clock);
  /// Returns why a version must not be deleted: its lock, or an open version that is based on it.
  [[nodiscard]] Result<std::optional<Error>> holder_of(const catalog::VersionRecord& record,
                                                       const DeletionOptions& options);
  /// Removes held versions from `gone` and returns them; fails at the first one unless
  /// `options.skip_held`. Asks `has_files` for each version that nothing else holds.
  [[nodiscard]] Result<std::vector<HeldVersion>> leave_out_held(
      std::vector<catalog::VersionRecord>& gone, const DeletionOptions& options,
      const std::function<bool(const catalog::VersionRecord&)>& has_files);
  [[nodiscard]] Result<DeletionForecast> forecast(const layout::DeletionPlan& plan,
                                                  const std::vector<catalog::VersionRecord>& gone,
                                                  std::optional<VersionNumber>& snapshot);
  [[nodiscard]] Result<DeletionForecast> delete_locked(
      SeriesState& state, const std::vector<catalog::VersionRecord>& gone);
  /// What open versions may refer to, by their numbers.
  using OpenChunks = std::map<VersionNumber, base::IdRuns>;
  [[nodiscard]] Result<void> commit_deletion(const layout::DeletionPlan& plan,
                                             const std::vector<catalog::VersionRecord>& gone,
                                             const catalog::ObjectSet& objects,
                                             const OpenChunks& open);
  /// Returns what the series' open version refers to. With `dying`, the open version cannot refer
  /// to more of these chunks from now on. Where it cannot be told, all that it may refer to stays.
  [[nodiscard]] layout::OpenHold open_hold(SeriesState& state, SeriesId series,
                                           const base::IdRuns* dying);
  /// Returns the open version's record without the chunks that die; nothing if it stays as it is.
  [[nodiscard]] Result<OpenChunks> open_record_after(const meta::Txn& txn, SeriesId series,
                                                     const layout::DeletionPlan& plan);
  /// Runs `work`; if the disk is full, gives the reserve up and runs it again.
  [[nodiscard]] Result<void> with_reserve(const std::function<Result<void>()>& work);

  // Manifests and labels, docs/ORDERING.md O23 to O26. repository_manifests.cc.
  struct DeadManifests {
    std::vector<VersionNumber> numbers;
    std::uint64_t bytes = 0;  ///< Of their files, and of what the labels become shorter.
  };
  [[nodiscard]] Result<void> check_catalog_age();
  [[nodiscard]] Result<void> complete_manifests();
  [[nodiscard]] Result<void> complete_manifests_of(SeriesId series);
  /// With the version's objects, of which there are `objects`; its records are still to be added.
  [[nodiscard]] Result<std::unique_ptr<maintain::ManifestWriter>> begin_manifest(
      const catalog::VersionRecord& record, std::uint64_t objects);
  /// Writes the manifest of a sealed version again after its lock has changed (O32).
  void rewrite_manifest(const catalog::VersionRecord& record);
  /// What goes with the versions `gone`, and what is not needed any more without them.
  [[nodiscard]] Result<DeadManifests> dead_manifests(
      SeriesId series, const std::vector<catalog::VersionRecord>& gone,
      const OpenChunks& open = {});
  /// After the commit that made them dead.
  void drop_manifests(SeriesId series, const DeadManifests& dead);
  /// After each commit that changes what the labels say.
  void sync_labels(SeriesId series);
  void sync_all_labels();
  [[nodiscard]] std::unique_ptr<catalog::ObjectReader> objects_of(SeriesId series);

  // Arranging. repository_arrange.cc.
  void arrange_soon(SeriesId series);
  /// At the opening: an earlier process may have been stopped, or have left it to others.
  void arrange_what_is_owed();
  void arrange_in_background(const ArrangeOptions& options);
  /// Who works in the background gives way to who writes.
  enum class Pace { kAtOnce, kBackground };
  [[nodiscard]] Result<bool> arrange_series(SeriesId series, const ArrangeOptions& options,
                                            Pace pace, ArrangeProgress& done);
  /// Once a series is arranged: makes the parity that it lacks, and removes what it does not need.
  /// What stands in the way (a full disk, damage) is logged. False if it was stopped.
  [[nodiscard]] Result<bool> protect_series(SeriesId series, const ArrangeOptions& options,
                                            ArrangeProgress& done);
  void stop_arranging();

  /// Returns the clock's record to commit with the seal.
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

  std::mutex arrange_mutex_;  // Guards what follows, up to the thread; innermost.
  std::condition_variable_any arrange_wake_;
  std::set<SeriesId> to_arrange_;
  std::jthread arranger_;

  std::mutex labels_mutex_;  // Held by who writes labels; innermost.

  std::mutex mutex_;
  std::map<SeriesId, std::unique_ptr<SeriesState>> states_;
  std::uint32_t next_series_ = 1;  // States of removed series stay, so ids are not reused.
};

}  // namespace varve::repo
