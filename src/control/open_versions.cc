// SPDX-License-Identifier: Apache-2.0
#include "control/open_versions.h"

#include <chrono>

namespace varve::control {

namespace {
// Present sizes are not worth a long wait for a stopped daemon.
constexpr ClientPatience kPatience{std::chrono::seconds(5), std::chrono::seconds(1)};
}  // namespace

Result<std::vector<VersionInfo>> OpenVersions::of(const SeriesInfo& series) {
  // A daemon's sizes make measuring unnecessary.
  VARVE_TRY_ASSIGN(auto versions, repository_.open_versions(series.id, OpenSizes::kUnknown));
  if (versions.empty()) return versions;
  if (!connected_) {
    auto daemon = Client::connect(repository_.path(), kPatience);
    if (daemon) daemon_.emplace(*std::move(daemon));
    connected_ = true;
  }
  if (daemon_) {
    auto present = daemon_->ask<Operation::kOpenVersions>(series.name);
    if (present) return present;
    daemon_.reset();
  }
  return repository_.open_versions(series.id);
}

}  // namespace varve::control
