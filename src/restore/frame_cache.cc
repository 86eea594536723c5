// SPDX-License-Identifier: Apache-2.0
#include "restore/frame_cache.h"

#include <algorithm>
#include <utility>

namespace varve::restore {

std::shared_ptr<const Frame> FrameCache::find(const FrameKey& key) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    entry.used = ++ticks_;
    return entry.frame;
  }
  return nullptr;
}

void FrameCache::insert(const FrameKey& key, std::shared_ptr<const Frame> frame) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.key == key) return;  // Another reader was first.
  }
  if (entries_.size() < kFramesMax) {
    entries_.push_back({key, std::move(frame), ++ticks_});
    return;
  }
  const auto oldest =
      std::min_element(entries_.begin(), entries_.end(),
                       [](const Entry& a, const Entry& b) { return a.used < b.used; });
  *oldest = {key, std::move(frame), ++ticks_};
}

}  // namespace varve::restore
