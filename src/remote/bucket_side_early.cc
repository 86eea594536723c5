// SPDX-License-Identifier: Apache-2.0
// Uploads before a seal. docs/decisions/110.
#include <mutex>
#include <utility>

#include "base/log.h"
#include "remote/bucket_side.h"

namespace varve::remote {

void BucketSide::upload_early() {
  if (!replicator_ || hooks_.early_bytes == 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(any_begun_, false)) return;
    if (hooks_.in_background) {
      early_ = true;
      start_thread();
      wake_.notify_all();
      return;
    }
  }
  upload_now();
}

// The first file requests the newest head, so that the answer is ready before the seal.
void BucketSide::begun() {
  if (!replicator_ || hooks_.early_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  any_begun_ = true;
  if (std::exchange(ever_begun_, true) || !hooks_.in_background) return;
  early_ = true;
  start_thread();
  wake_.notify_all();
}

void BucketSide::upload_now() {
  const auto done = replicator_->upload_early();
  if (done) return;
  base::log(base::LogLevel::kDebug, "not uploaded yet: " + done.error().message());
  const std::lock_guard lock(mutex_);
  any_begun_ = true;  // The next checkpoint tries again.
}

}  // namespace varve::remote
