// SPDX-License-Identifier: Apache-2.0
#include "control/remote_control.h"

namespace varve::control {

RemoteControl::RemoteControl(Place place, Client client, std::unique_ptr<Repository> view)
    : place_(std::move(place)), client_(std::move(client)), view_(std::move(view)) {
  place_.options.read_only = true;
}

template <typename Operation>
auto RemoteControl::call(const Operation& operation)
    -> decltype(operation(std::declval<Client&>())) {
  if (!client_) {
    VARVE_TRY_ASSIGN(Client client, Client::connect(place_.path));
    client_.emplace(std::move(client));
  }
  auto result = operation(*client_);
  if (!result && result.error().code() == ErrorCode::kInterrupted) client_.reset();
  return result;
}

Result<Repository*> RemoteControl::view() {
  if (!view_) {
    VARVE_TRY_ASSIGN(view_, Repository::open(place_.path, place_.options));
  }
  return view_.get();
}

Result<SealReply> RemoteControl::seal(const SealRequest& request, const StopRequest& stop) {
  return call([&](Client& client) { return client.seal(request, stop.descriptor()); });
}

Result<VersionInfo> RemoteControl::open(const OpenRequest& request) {
  return call([&](Client& client) { return client.open(request); });
}

Result<VersionInfo> RemoteControl::clone(const OpenRequest& request) {
  return call([&](Client& client) { return client.clone(request); });
}

Result<DeletionForecast> RemoteControl::remove(const DeleteRequest& request) {
  return call([&](Client& client) { return client.remove(request); });
}

Result<void> RemoteControl::lock(const LockRequest& request) {
  return call([&](Client& client) { return client.lock(request); });
}

Result<void> RemoteControl::claim(const ClaimRequest& request) {
  return call([&](Client& client) { return client.claim(request); });
}

Result<void> RemoteControl::rename(const RenameRequest& request) {
  return call([&](Client& client) { return client.rename(request); });
}

Result<StoreTaskReply> RemoteControl::store(
    const StoreTask& task, const StopRequest& stop,
    const std::function<void(const TransferProgress&)>& progress) {
  return call([&](Client& client) { return client.store(task, stop.descriptor(), progress); });
}

Result<ArrangeReport> RemoteControl::arrange(
    const ArrangeRequest& request, const StopRequest& stop,
    const std::function<void(const ArrangeProgress&)>& progress) {
  return call([&](Client& client) { return client.arrange(request, stop.descriptor(), progress); });
}

Result<ArrangeSettings> RemoteControl::arrange_settings(
    const std::optional<ArrangeSettings>& settings) {
  return call([&](Client& client) { return client.arrange_settings(settings); });
}

Result<SeriesSettings> RemoteControl::series_settings(const SeriesSettingsRequest& request) {
  return call([&](Client& client) { return client.series_settings(request); });
}

Result<UpkeepSettings> RemoteControl::upkeep(const UpkeepRequest& request) {
  return call([&](Client& client) { return client.upkeep(request); });
}

Result<PoolIndexChoice> RemoteControl::pool_index(const PoolIndexRequest& request) {
  return call([&](Client& client) { return client.pool_index(request); });
}

Result<DamageReply> RemoteControl::known_damage(const DamageRequest& request) {
  return call([&](Client& client) { return client.known_damage(request); });
}

Result<void> RemoteControl::adopt_keys(const KeysRequest& request) {
  return call([&](Client& client) { return client.adopt_keys(request); });
}

Result<std::vector<PoolStream>> RemoteControl::pool_streams() {
  return call([](Client& client) { return client.pool_streams(); });
}

Result<std::vector<VersionInfo>> RemoteControl::open_versions(const std::string& series) {
  return call([&](Client& client) { return client.open_versions(series); });
}

Result<std::vector<MetricSample>> RemoteControl::metrics() {
  return call([](Client& client) { return client.metrics(); });
}

Result<void> RemoteControl::sync() {
  return call([&](Client& client) { return client.sync(); });
}

Result<CatalogCompaction> RemoteControl::compact_catalog() {
  return Error(ErrorCode::kBusy,
               place_.path +
                   " is mounted: unmount it, and run the command again. A daemon compacts the "
                   "catalog by itself when it ends, if that saves much");
}

Result<void> RemoteControl::close() {
  client_.reset();
  return view_ ? view_->close() : Result<void>();
}

}  // namespace varve::control
