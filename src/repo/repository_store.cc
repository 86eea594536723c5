// SPDX-License-Identifier: Apache-2.0
// The part of a repository for the object store.
#include <memory>
#include <string>

#include "repo/repository_impl.h"

namespace varve::repo {

base::Metrics& RepositoryImpl::metrics_registry() {
  if (bucket_) store_metrics_.raise_to(bucket_->traffic());
  return metrics_;
}

void RepositoryImpl::replicate_soon() {
  if (bucket_) bucket_->notify();
}

// The catalog may be replaced after end_replication().
Result<void> RepositoryImpl::end_replication() {
  if (!bucket_) return {};
  const auto done = options_.store.waits ? bucket_->finish() : Result<void>();
  bucket_->stop();
  return done;
}

Result<std::optional<StoreLease>> RepositoryImpl::store_lease() {
  if (!bucket_) return std::optional<StoreLease>();
  VARVE_TRY_ASSIGN(auto lease, bucket_->lease(codecs_.keys().get()));
  if (!lease) return std::optional<StoreLease>();
  return std::optional(StoreLease{.host = std::move(lease->host),
                                  .user = std::move(lease->user),
                                  .folder = std::move(lease->folder),
                                  .since = {lease->since_s, 0}});
}

Result<void> RepositoryImpl::follow(std::chrono::milliseconds interval) {
  if (!may_follow_) return {};
  return bucket_->follow(catalog_, codecs_.keys(), interval);
}

std::unique_ptr<store::SegmentStore> RepositoryImpl::segments(const std::string& directory) {
  if (!bucket_) return nullptr;
  return bucket_->segments(*files_, directory);
}

}  // namespace varve::repo
