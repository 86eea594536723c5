// SPDX-License-Identifier: Apache-2.0
// The locks of an open repository's objects, and the lease.
#include <fmt/core.h>

#include "base/log.h"
#include "remote/bucket_side.h"
#include "remote/object_lock_setting.h"
#include "remote/object_locks.h"

namespace varve::remote {

Result<void> BucketSide::allow_lock(const ObjectLock& lock) {
  return require_locks(*bucket_, lock, clock());
}

void BucketSide::extend_locks() {
  if (!replicator_ || replicator_->is_fenced()) return;
  LockPlace place;
  place.bucket = bucket_.get();
  place.state = &replicator_->state();
  place.limits = hooks_.uploads;
  place.at_once = hooks_.locks_at_once;
  const auto done = remote::extend_locks(place);
  if (!done) {
    base::log(base::LogLevel::kInfo, "locks are extended later: " + done.error().message());
    return;
  }
  if (hooks_.locks_extended) hooks_.locks_extended(*done);
  if (done->refused == 0) return;
  base::log(base::LogLevel::kWarning,
            fmt::format("the store did not extend the locks of {} objects: {}. Objects whose locks "
                        "end are not protected; `varve check` lists them",
                        done->refused, done->refusal));
}

Result<std::optional<Lease>> BucketSide::lease(const crypto::KeyRing* keys) {
  if (replicator_) return kept_lease(replicator_->state(), keys);
  const std::lock_guard lock(state_mutex_);
  if (state_) return kept_lease(*state_, keys);
  VARVE_TRY_ASSIGN(const auto state, find_state(*files_, path_));
  if (!state) return std::optional<Lease>();
  return kept_lease(*state, keys);
}

}  // namespace varve::remote
