// SPDX-License-Identifier: Apache-2.0
// The part of a repository that stores directories and streams.
#include "repo/open_store.h"
#include "repo/repository_impl.h"
#include "varve/backup.h"
#include "varve/store.h"

namespace varve::repo {

Result<StoredVersion> RepositoryImpl::store_version(
    const StoreRequest& request, const std::function<bool(const TransferProgress&)>& progress) {
  return repo::store_version(*this, *folder_.files, request, progress);
}

Result<StorePlan> RepositoryImpl::plan_store(
    const StoreRequest& request,
    const std::function<void(StoreChange change, const std::string& path)>& changed,
    const std::function<bool(const TransferProgress&)>& progress) {
  return repo::plan_store(*this, *folder_.files, request, changed, progress);
}

Result<StoredVersion> RepositoryImpl::store_stream(
    const StreamRequest& request, int fd,
    const std::function<bool(const TransferProgress&)>& progress) {
  return repo::store_stream(*this, *folder_.files, request, fd, progress);
}

}  // namespace varve::repo
