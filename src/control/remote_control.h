// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/client.h"
#include "control/repository_control.h"
#include "varve/options.h"

namespace varve::control {

/// Controls a repository through the daemon that has it mounted.
class RemoteControl final : public RepositoryControl {
 public:
  /// The folder of a repository, and the options to open the repository for reading.
  struct Place {
    std::string path;
    OpenOptions options;
  };
  /// `view`: the repository, opened for reading; nullptr to open the repository on demand.
  RemoteControl(Place place, Client client, std::unique_ptr<Repository> view = nullptr);

  [[nodiscard]] Result<Repository*> view() override;
  [[nodiscard]] bool arranges_by_itself() const override { return true; }
  [[nodiscard]] Result<SealReply> seal(const SealRequest& request,
                                       const StopRequest& stop) override;
  [[nodiscard]] Result<VersionInfo> open(const OpenRequest& request) override;
  [[nodiscard]] Result<VersionInfo> clone(const OpenRequest& request) override;
  [[nodiscard]] Result<DeletionForecast> remove(const DeleteRequest& request) override;
  [[nodiscard]] Result<void> lock(const LockRequest& request) override;
  [[nodiscard]] Result<void> claim(const ClaimRequest& request) override;
  [[nodiscard]] Result<void> rename(const RenameRequest& request) override;
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
  [[nodiscard]] Result<std::vector<MetricSample>> metrics() override;
  [[nodiscard]] Result<void> sync() override;
  [[nodiscard]] Result<CatalogCompaction> compact_catalog() override;
  [[nodiscard]] Result<void> close() override;

 private:
  /// Calls `operation` with the connection. Drops the connection after a stop, to stop the daemon
  /// too; the next call connects again.
  template <typename Operation>
  [[nodiscard]] auto call(const Operation& operation)
      -> decltype(operation(std::declval<Client&>()));

  Place place_;
  std::optional<Client> client_;
  std::unique_ptr<Repository> view_;
};

}  // namespace varve::control
