// SPDX-License-Identifier: Apache-2.0
#include "store/open_files.h"

namespace varve::store {

OpenFiles::File OpenFiles::find(const Key& key, std::uint64_t& state) {
  const std::lock_guard lock(mutex_);
  state = forgotten_;
  const auto place = place_of_.find(key);
  if (place == place_of_.end()) return nullptr;
  files_.splice(files_.begin(), files_, place->second);
  return place->second->second;
}

OpenFiles::File OpenFiles::add(const Key& key, std::uint64_t state, File file) {
  Files closed;  // Closed after the lock is released.
  const std::lock_guard lock(mutex_);
  if (state != forgotten_) return file;
  if (const auto place = place_of_.find(key); place != place_of_.end()) {
    return place->second->second;
  }
  files_.emplace_front(key, file);
  place_of_[key] = files_.begin();
  if (files_.size() > files_max_) {
    place_of_.erase(files_.back().first);
    closed.splice(closed.begin(), files_, std::prev(files_.end()));
  }
  return file;
}

void OpenFiles::forget(const SegmentStore& store, SegmentNumber segment) {
  Files closed;
  const std::lock_guard lock(mutex_);
  ++forgotten_;
  for (const ReadMode mode : {ReadMode::kCached, ReadMode::kPlanned, ReadMode::kDirect}) {
    const auto place = place_of_.find({&store, segment, mode});
    if (place == place_of_.end()) continue;
    closed.splice(closed.begin(), files_, place->second);
    place_of_.erase(place);
  }
}

void OpenFiles::forget(const SegmentStore& store) {
  Files closed;
  const std::lock_guard lock(mutex_);
  ++forgotten_;
  std::erase_if(place_of_, [&](const auto& entry) {
    if (entry.first.store != &store) return false;
    closed.splice(closed.begin(), files_, entry.second);
    return true;
  });
}

}  // namespace varve::store
