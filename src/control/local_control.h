// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/named_version.h"
#include "control/repository_control.h"
#include "varve/backup.h"

namespace varve::control {

/// Returns the error of a change in a fenced repository: kReadOnly.
[[nodiscard]] Error no_changes();

/// Controls a repository opened by the calling process. Thread-safe, except for close(). A daemon
/// derives a class that also notifies the kernel of the changes.
class LocalControl : public RepositoryControl {
 public:
  /// Lifetime: `repository` must outlive the control.
  explicit LocalControl(Repository& repository) : repository_(repository) {}
  explicit LocalControl(std::unique_ptr<Repository> repository)
      : owned_(std::move(repository)), repository_(*owned_) {}

  [[nodiscard]] Result<Repository*> view() override { return &repository_; }
  [[nodiscard]] bool arranges_by_itself() const override { return false; }
  [[nodiscard]] Result<SealReply> seal(const SealRequest& request,
                                       const StopRequest& stop) override;
  [[nodiscard]] Result<VersionInfo> open(const OpenRequest& request) override;
  [[nodiscard]] Result<VersionInfo> clone(const OpenRequest& request) override;
  [[nodiscard]] Result<DeletionForecast> remove(const DeleteRequest& request) override;
  [[nodiscard]] Result<void> lock(const LockRequest& request) override;
  [[nodiscard]] Result<void> claim(const ClaimRequest& request) override;
  [[nodiscard]] Result<void> rename(const RenameRequest& request) override;
  /// As RepositoryControl::store(). A stream must be a regular file or a pipe.
  [[nodiscard]] Result<StoreTaskReply> store(
      const StoreTask& task, const StopRequest& stop,
      const std::function<void(const TransferProgress&)>& progress) override;
  [[nodiscard]] Result<ArrangeReport> arrange(
      const ArrangeRequest& request, const StopRequest& stop,
      const std::function<void(const ArrangeProgress&)>& progress) override;
  [[nodiscard]] Result<ArrangeSettings> arrange_settings(
      const std::optional<ArrangeSettings>& settings) override;
  [[nodiscard]] Result<SeriesSettings> series_settings(
      const SeriesSettingsRequest& request) override;
  [[nodiscard]] Result<PoolIndexChoice> pool_index(const PoolIndexRequest& request) override;
  [[nodiscard]] Result<void> adopt_keys(const KeysRequest& request) override;
  [[nodiscard]] Result<DamageReply> known_damage(const DamageRequest& request) override;
  [[nodiscard]] Result<UpkeepSettings> upkeep(const UpkeepRequest& request) override;
  [[nodiscard]] Result<std::vector<PoolStream>> pool_streams() override;
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(const std::string& series) override;
  [[nodiscard]] Result<std::vector<MetricSample>> metrics() override {
    return repository_.metrics();
  }
  [[nodiscard]] Result<void> sync() override { return repository_.sync(); }
  [[nodiscard]] Result<CatalogCompaction> compact_catalog() override {
    return repository_.compact_catalog();
  }
  [[nodiscard]] Result<void> write_left_files() override { return repository_.write_left_files(); }
  [[nodiscard]] Result<void> close() override { return repository_.close(); }

 protected:
  /// Checks that a change would reach the object store, before the change. Errors: no_changes().
  [[nodiscard]] virtual Result<void> check_changes();
  /// Seals a version. LocalControl does not wait for writers, and returns no warning: the
  /// repository has logged the warning to the process's standard error.
  [[nodiscard]] virtual Result<SealOutcome> seal_version(const VersionInfo& version,
                                                         const SealRequest& request,
                                                         const StopRequest& stop);
  [[nodiscard]] virtual Result<VersionInfo> open_version(const SeriesInfo& series,
                                                         std::string_view name,
                                                         const NewFile& root);
  [[nodiscard]] virtual Result<VersionInfo> clone_version(const SeriesInfo& series,
                                                          VersionNumber source,
                                                          std::string_view name);
  /// Drops an open version with all its files.
  [[nodiscard]] virtual Result<void> discard_version(SeriesId series, VersionNumber number);
  [[nodiscard]] virtual Result<void> rename_version(const VersionInfo& version,
                                                    std::string_view new_name);
  [[nodiscard]] virtual Result<void> rename_series(const SeriesInfo& series,
                                                   std::string_view new_name);
  [[nodiscard]] virtual Result<DeletionForecast> delete_versions(
      SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options);

 private:
  class Storing;
  [[nodiscard]] Result<StoreTaskReply> store_alone(
      const StoreTask& task, const StopRequest& stop,
      const std::function<void(const TransferProgress&)>& progress);
  [[nodiscard]] Result<StoreTaskReply> store_stream_alone(
      const StoreTask& task, const StopRequest& stop,
      const std::function<void(const TransferProgress&)>& progress);
  /// Opens the version of a store, with the tree of `source` unless `source` is 0.
  [[nodiscard]] Result<VersionInfo> open_to_store(const VersionName& name, SeriesId id,
                                                  VersionNumber source, const NewFile& root);
  /// Claims the time of a stored version, and seals or syncs the version, as the task says. Returns
  /// `reply` with the version and the report.
  [[nodiscard]] Result<StoreTaskReply> end_store(const StoreTask& task, StoredVersion stored,
                                                 const StopRequest& stop, StoreTaskReply reply);

  std::unique_ptr<Repository> owned_;
  Repository& repository_;
  std::mutex storing_mutex_;       // Guards `storing_`. Taken last.
  std::set<std::string> storing_;  // Series into which a store is under way.
};

}  // namespace varve::control
