// SPDX-License-Identifier: Apache-2.0
// The part of a repository for the object store.
#include <memory>
#include <string>

#include "repo/repository_impl.h"

namespace varve::repo {

base::Metrics& RepositoryImpl::metrics_registry() {
  store_metrics_.raise_to(folder_.storage->traffic());
  return metrics_;
}

Result<std::optional<StoreLease>> RepositoryImpl::store_lease() {
  VARVE_TRY_ASSIGN(auto lease, folder_.storage->lease(folder_.codecs.keys().get()));
  if (!lease) return std::optional<StoreLease>();
  return std::optional(StoreLease{.host = std::move(lease->host),
                                  .user = std::move(lease->user),
                                  .folder = std::move(lease->folder),
                                  .since = {lease->since_s, 0}});
}

Result<bool> RepositoryImpl::follow(std::chrono::milliseconds interval,
                                    std::function<void()> changed) {
  if (!folder_.may_follow) return false;
  return folder_.storage->follow(folder_.catalog, folder_.codecs.keys(), interval,
                                 std::move(changed));
}

}  // namespace varve::repo
