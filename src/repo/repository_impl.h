// SPDX-License-Identifier: Apache-2.0
// Connects the rooms of a repository. No other place builds the rooms' objects.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "meta/meta_metrics.h"
#include "remote/bucket_hooks.h"
#include "remote/head_request.h"
#include "remote/store_metrics.h"
#include "repo/arrange_queue.h"
#include "repo/key_ring_editor.h"
#include "repo/quarantine_keeper.h"
#include "repo/repository_folder.h"
#include "repo/required_features.h"
#include "repo/sequence_memory.h"
#include "repo/series_resources.h"
#include "repo/series_table.h"
#include "repo/settings_editor.h"
#include "repo/settled_state.h"
#include "series/series.h"
#include "series/series_host.h"
#include "varve/arrange.h"
#include "varve/beside.h"
#include "varve/check.h"
#include "varve/replication.h"
#include "varve/repository.h"

namespace varve::maintain {
struct CheckHelpers;
}  // namespace varve::maintain

namespace varve::repo {

/// Implements Repository, and the repository as the series see it: opens and closes the folder, and
/// connects the parts. Each part has its own state and lock. Thread-safe. Lock order: the mutex of
/// QuarantineKeeper is outermost; the mutexes of the other parts are innermost.
class RepositoryImpl final : public Repository, private series::SeriesHost {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Repository>> open(
      const std::string& path, const OpenOptions& options, const remote::BucketHooks& hooks = {});
  /// As open(), for the parts of this room.
  [[nodiscard]] static Result<std::unique_ptr<RepositoryImpl>> open_itself(
      const std::string& path, const OpenOptions& options, const remote::BucketHooks& hooks = {});
  ~RepositoryImpl() override;

  [[nodiscard]] Result<void> close() override;
  [[nodiscard]] Result<CatalogCompaction> compact_catalog() override;
  [[nodiscard]] Result<void> sync() override;
  [[nodiscard]] Result<void> write_left_files() override;
  [[nodiscard]] const std::string& path() const override { return folder_.paths.root(); }
  [[nodiscard]] std::string present_path() override;
  [[nodiscard]] bool read_only() const override { return folder_.options.read_only; }
  [[nodiscard]] std::string id() const override { return folder_.superblock.repository_id(); }
  [[nodiscard]] Result<std::optional<std::uint64_t>> sequence() override {
    return folder_.sequence();
  }
  [[nodiscard]] const RepositoryParameters& parameters() const override {
    return folder_.superblock.parameters();
  }
  [[nodiscard]] Result<std::vector<SeriesInfo>> series() override { return series_.list(); }
  [[nodiscard]] Result<SeriesInfo> find_series(std::string_view name) override {
    return series_.find_named(name);
  }
  [[nodiscard]] Result<SeriesInfo> create_series(std::string_view name,
                                                 const SeriesOptions& options) override {
    return series_.create(name, options);
  }
  [[nodiscard]] Result<SeriesSettings> change_series(SeriesId series,
                                                     const SeriesOptions& changes) override {
    return series_.change(series, changes);
  }
  [[nodiscard]] Result<void> rename_series(SeriesId series, std::string_view new_name) override {
    return series_.rename(series, new_name);
  }
  [[nodiscard]] Result<SeriesSettings> series_defaults() override {
    return settings_.series_defaults();
  }
  [[nodiscard]] Result<SeriesSettings> change_series_defaults(
      const SeriesOptions& changes) override {
    return settings_.change_series_defaults(changes);
  }
  [[nodiscard]] Result<PoolIndexChoice> pool_index() override { return settings_.pool_index(); }
  [[nodiscard]] Result<void> set_pool_index(const PoolIndexChoice& choice) override {
    return settings_.set_pool_index(choice);
  }
  [[nodiscard]] Result<UpkeepSettings> upkeep_settings() override {
    return settings_.upkeep_settings();
  }
  [[nodiscard]] Result<void> set_upkeep_settings(const UpkeepSettings& settings) override {
    return settings_.set_upkeep_settings(settings);
  }
  [[nodiscard]] Result<std::optional<RefusedStore>> refused_store(SeriesId series) override {
    return settings_.refused_store(series);
  }
  [[nodiscard]] Result<void> note_refused_store(SeriesId series, RefusalReason reason) override {
    return settings_.note_refused_store(series, reason);
  }
  [[nodiscard]] Result<void> adopt_keys(std::string_view superblock) override {
    return key_ring_.adopt(superblock);
  }
  [[nodiscard]] Result<std::shared_ptr<BesideFiles>> beside(SeriesId series) override {
    return series_.beside(series);
  }
  [[nodiscard]] Result<std::vector<PoolStream>> pool_streams() override;
  [[nodiscard]] Result<ArrangeSettings> arrange_settings() override {
    return settings_.arrange_settings();
  }
  [[nodiscard]] Result<void> set_arrange_settings(const ArrangeSettings& settings) override;
  [[nodiscard]] Result<ArrangeReport> arrange(SeriesId series,
                                              const ArrangeOptions& options) override {
    return arranging_.arrange(series, options);
  }
  [[nodiscard]] Result<CheckReport> check(const CheckOptions& options,
                                          const CheckObserver& progress) override;
  [[nodiscard]] Result<ScrubReport> scrub(const ScrubOptions& options,
                                          const CheckObserver& progress) override;
  [[nodiscard]] std::vector<EarlierCheck> earlier_checks() override;
  [[nodiscard]] Result<std::uint64_t> settle_quarantine() override { return quarantine_.settle(); }
  [[nodiscard]] Result<LostFiles> lost_files(SeriesId series, VersionNumber number) override {
    return quarantine_.lost_files(series, number);
  }
  [[nodiscard]] Result<std::vector<VersionNumber>> versions_with_losses(SeriesId series) override {
    return quarantine_.versions_with_losses(series);
  }
  [[nodiscard]] Result<bool> has_older_catalog() override {
    return settled_state_.has_older_catalog();
  }
  [[nodiscard]] Result<RepositoryStats> stats() override;
  [[nodiscard]] Result<SpaceInfo> space() override;
  [[nodiscard]] std::vector<MetricSample> metrics() override;
  void add_metrics(MetricSource source) override;

  // repository_versions.cc: the functions of a series, which each placement implements.
  [[nodiscard]] Result<void> remove_series(std::string_view name) override;
  [[nodiscard]] Result<std::vector<VersionInfo>> versions(SeriesId series) override;
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(SeriesId series,
                                                               OpenSizes sizes) override;
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
  [[nodiscard]] Result<void> check_deletion(SeriesId series, VersionNumber number) override;
  [[nodiscard]] Result<void> lock_version(SeriesId series, VersionNumber number,
                                          Timestamp until) override;
  [[nodiscard]] Result<std::vector<VersionUsage>> version_usage(SeriesId series) override;
  [[nodiscard]] Result<VersionUsage> version_usage(SeriesId series, VersionNumber number) override;
  [[nodiscard]] Result<PoolUsage> pool_usage(SeriesId series, VersionNumber number) override;
  [[nodiscard]] Result<std::vector<VersionLock>> version_locks(SeriesId series) override;
  [[nodiscard]] Result<std::vector<CategoryInfo>> categories(SeriesId series) override;
  [[nodiscard]] Result<DeltaSavings> delta_savings(SeriesId series) override;
  [[nodiscard]] Result<ArrangingDebt> arranging_debt(SeriesId series) override;
  [[nodiscard]] Result<std::uint64_t> lost_chunks_stamp(SeriesId series) override;

  // repository_store.cc.
  [[nodiscard]] Result<bool> follow_store(std::chrono::milliseconds interval,
                                          std::function<void()> changed) override;
  void end_store_reads() override { folder_.storage->end_reads(); }
  void will_read_once() override { folder_.storage->will_read_once(); }
  [[nodiscard]] bool is_fenced() const override { return folder_.replication().is_fenced(); }
  [[nodiscard]] bool learn_fence(FenceAge age) override {
    return folder_.replication().learn_fence(age);
  }
  [[nodiscard]] Result<std::optional<StoreLease>> store_lease() override;

  // repository_storing.cc.
  [[nodiscard]] Result<StoredVersion> store_version(
      const StoreRequest& request,
      const std::function<bool(const TransferProgress&)>& progress) override;
  [[nodiscard]] Result<StorePlan> plan_store(
      const StoreRequest& request,
      const std::function<void(StoreChange change, const std::string& path)>& changed,
      const std::function<bool(const TransferProgress&)>& progress) override;
  [[nodiscard]] Result<StoredVersion> store_stream(
      const StreamRequest& request, int fd,
      const std::function<bool(const TransferProgress&)>& progress) override;

  /// Lifetime: the editor lives as long as the repository.
  [[nodiscard]] KeyRingEditor& key_ring() { return key_ring_; }

 private:
  explicit RepositoryImpl(OpenedFolder opened);
  // repository_open.cc.
  [[nodiscard]] static Result<std::unique_ptr<RepositoryImpl>> open_folder_at(
      const std::string& path, const OpenOptions& options, const remote::BucketHooks& hooks,
      remote::HeadLearning& learning);
  /// As open_folder_at(). First gives the catalog a new key if the present key is half used.
  [[nodiscard]] static Result<std::unique_ptr<RepositoryImpl>> open_with_room(
      const std::string& path, const OpenOptions& options, const remote::BucketHooks& hooks,
      remote::HeadLearning& learning);
  [[nodiscard]] Result<void> start();
  /// Completes the last writer's unfinished files beside the catalog, unless the last writer noted
  /// that no work was left.
  [[nodiscard]] Result<void> settle_at_opening();
  /// Notes that no work is left, if true. Logs errors.
  void settle_at_close();
  /// Ends the work of close() before the catalog is compacted.
  [[nodiscard]] Result<void> end_work();
  /// Ends the work, and gives the catalog a new key. Logs the reason on failure. The repository
  /// cannot be used afterwards. Errors: as for end_work() and
  /// RepositoryFolder::end_replication().
  [[nodiscard]] Result<void> renew_key();
  // The functions for the series.
  [[nodiscard]] Result<series::Pool*> pool() override { return resources_.pool(); }
  [[nodiscard]] series::Pool* opened_pool() override { return resources_.opened_pool(); }
  [[nodiscard]] std::string superblock() override { return folder_.superblock.text(); }
  [[nodiscard]] Result<void> require_aliases() override;
  void on_reader() override { resources_.disk_costs()->on_reader(); }
  void before_seal(SeriesId series) override { arranging_.before_seal(series); }
  void arrange_soon(SeriesId series) override { arranging_.arrange_soon(series); }
  [[nodiscard]] series::ArrangeUrgency arrange_urgency(SeriesId series) override {
    return arranging_.urgency(series);
  }
  [[nodiscard]] series::EvictionRules* eviction() override { return arranging_.eviction(); }
  void replicate_soon() override { folder_.replication().changed(); }
  void left_behind() override { settled_state_.set_leaves_work(true); }
  void labelled(std::uint64_t sequence) override { sequence_memory_.remember(sequence); }

  /// Returns the callbacks of a check for indexes, open versions and caches.
  [[nodiscard]] maintain::CheckHelpers check_helpers();

  base::Metrics metrics_;
  std::mutex sources_mutex_;  // Guards metric_sources_. Innermost.
  std::vector<MetricSource> metric_sources_;
  const meta::MetaMetrics catalog_metrics_{metrics_};
  remote::StoreMetrics store_metrics_{metrics_};
  RepositoryFolder folder_;
  SequenceMemory sequence_memory_{folder_};
  SettledState settled_state_{folder_};
  SeriesResources resources_{folder_, settled_state_, metrics_};
  RequiredFeatures features_{folder_};
  SeriesTable series_{folder_, settled_state_, resources_, features_, *this};
  SettingsEditor settings_{folder_, features_, series_};
  ArrangeQueue arranging_{folder_, series_, settings_};
  KeyRingEditor key_ring_{folder_, series_};
  QuarantineKeeper quarantine_{folder_, resources_, series_};
  std::mutex path_mutex_;  // Guards seen_path_.
  std::string seen_path_;  // The last logged present_path(); empty at first.
};

}  // namespace varve::repo
