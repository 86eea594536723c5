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
  /// Calls `function` with the connection. Drops the connection after a stop, to stop the daemon
  /// too; the next call connects again.
  template <typename Function>
  [[nodiscard]] auto call(const Function& function) -> decltype(function(std::declval<Client&>())) {
    if (!client_) {
      VARVE_TRY_ASSIGN(Client client, Client::connect(place_.path));
      client_.emplace(std::move(client));
    }
    auto result = function(*client_);
    if (!result && result.error().code() == ErrorCode::kInterrupted) client_.reset();
    return result;
  }
  /// Carries out a simple operation, as Client::ask() does.
  template <Operation kOperation, typename... In>
  [[nodiscard]] auto ask(const In&... in) {
    return call([&](Client& client) { return client.ask<kOperation>(in...); });
  }

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
  [[nodiscard]] Result<VersionInfo> open(const OpenRequest& request) override {
    return ask<Operation::kOpen>(request);
  }
  [[nodiscard]] Result<VersionInfo> clone(const OpenRequest& request) override {
    return ask<Operation::kClone>(request);
  }
  [[nodiscard]] Result<DeletionForecast> remove(const DeleteRequest& request) override {
    return ask<Operation::kDelete>(request);
  }
  [[nodiscard]] Result<void> lock(const LockRequest& request) override {
    return ask<Operation::kLock>(request);
  }
  [[nodiscard]] Result<void> claim(const ClaimRequest& request) override {
    return ask<Operation::kClaim>(request);
  }
  [[nodiscard]] Result<void> rename(const RenameRequest& request) override {
    return ask<Operation::kRename>(request);
  }
  [[nodiscard]] Result<StoreTaskReply> store(
      const StoreTask& task, const StopRequest& stop,
      const std::function<void(const TransferProgress&)>& progress) override;
  [[nodiscard]] Result<ArrangeReport> arrange(
      const ArrangeRequest& request, const StopRequest& stop,
      const std::function<void(const ArrangeProgress&)>& progress) override;
  [[nodiscard]] Result<ArrangeSettings> arrange_settings(
      const std::optional<ArrangeSettings>& settings) override {
    return ask<Operation::kArrangeSettings>(settings);
  }
  [[nodiscard]] Result<SeriesSettings> series_settings(
      const SeriesSettingsRequest& request) override {
    return ask<Operation::kSeriesSettings>(request);
  }
  [[nodiscard]] Result<PoolIndexChoice> pool_index(const PoolIndexRequest& request) override {
    return ask<Operation::kPoolIndex>(request);
  }
  [[nodiscard]] Result<void> adopt_keys(const KeysRequest& request) override {
    return ask<Operation::kKeys>(request);
  }
  [[nodiscard]] Result<DamageReply> known_damage(const DamageRequest& request) override {
    return ask<Operation::kKnownDamage>(request);
  }
  [[nodiscard]] Result<UpkeepSettings> upkeep(const UpkeepRequest& request) override {
    return ask<Operation::kUpkeep>(request);
  }
  [[nodiscard]] Result<std::vector<PoolStream>> pool_streams() override {
    return ask<Operation::kPoolStreams>();
  }
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(const std::string& series) override {
    return ask<Operation::kOpenVersions>(series);
  }
  [[nodiscard]] Result<std::vector<MetricSample>> metrics() override {
    return ask<Operation::kMetrics>();
  }
  [[nodiscard]] Result<void> sync() override { return ask<Operation::kSync>(); }
  [[nodiscard]] Result<CatalogCompaction> compact_catalog() override;
  [[nodiscard]] Result<void> write_left_files() override {
    return client_ ? client_->incomplete() : Result<void>();
  }
  [[nodiscard]] Result<void> close() override;

 private:
  Place place_;
  std::optional<Client> client_;
  std::unique_ptr<Repository> view_;
};

}  // namespace varve::control
