// SPDX-License-Identifier: Apache-2.0
#include "control/remote_control.h"

namespace varve::control {

RemoteControl::RemoteControl(Place place, Client client, std::unique_ptr<Repository> view)
    : place_(std::move(place)), client_(std::move(client)), view_(std::move(view)) {
  place_.options.read_only = true;
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

Result<CatalogCompaction> RemoteControl::compact_catalog() {
  return Error(ErrorCode::kBusy,
               place_.path +
                   " is mounted: unmount it, and run the command again. A daemon compacts the "
                   "catalog by itself when it ends, if that saves much");
}

Result<void> RemoteControl::close() {
  const auto left = write_left_files();
  client_.reset();
  if (view_) VARVE_TRY(view_->close());
  return left;
}

}  // namespace varve::control
