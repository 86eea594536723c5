// SPDX-License-Identifier: Apache-2.0
// The part of a repository for the object store.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "repo/repository_impl.h"

namespace varve::repo {

std::vector<MetricSample> RepositoryImpl::metrics() {
  store_metrics_.raise_to(folder_.storage->traffic());
  auto samples = metrics_.sample();
  {
    const std::lock_guard lock(sources_mutex_);
    for (const auto& source : metric_sources_) {
      auto more = source();
      std::ranges::move(more, std::back_inserter(samples));
    }
  }
  // All samples fit into one message of the control socket.
  if (samples.size() > base::Metrics::kMetricsMax) samples.resize(base::Metrics::kMetricsMax);
  std::ranges::stable_sort(samples, {}, &MetricSample::name);
  return samples;
}

void RepositoryImpl::add_metrics(MetricSource source) {
  const std::lock_guard lock(sources_mutex_);
  metric_sources_.push_back(std::move(source));
}

Result<std::optional<StoreLease>> RepositoryImpl::store_lease() {
  VARVE_TRY_ASSIGN(auto lease, folder_.storage->lease(folder_.codecs.keys().get()));
  if (!lease) return std::optional<StoreLease>();
  return std::optional(StoreLease{.host = std::move(lease->host),
                                  .user = std::move(lease->user),
                                  .folder = std::move(lease->folder),
                                  .since = {lease->since_s, 0}});
}

// A replication that has failed for good tries again with the next request: `varve wait` asks so.
Result<void> RepositoryImpl::sync() {
  VARVE_TRY(series_.sync());
  folder_.replication().changed();
  return {};
}

Result<bool> RepositoryImpl::follow_store(std::chrono::milliseconds interval,
                                          std::function<void()> changed) {
  if (!folder_.may_follow) return false;
  return folder_.storage->follow(folder_.catalog, folder_.codecs.keys(), interval,
                                 std::move(changed));
}

}  // namespace varve::repo
