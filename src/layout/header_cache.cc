// SPDX-License-Identifier: Apache-2.0
#include "layout/header_cache.h"

namespace varve::layout {
namespace {

std::size_t memory_of(const format::ContainerHeader& header) {
  return sizeof header + header.frames.capacity() * sizeof(format::FrameEntry) +
         header.chunks.capacity() * sizeof(format::ChunkEntry);
}

}  // namespace

HeaderCache::~HeaderCache() {
  std::unique_lock lock(mutex_);
  read_.wait(lock, [this] { return reading_.empty(); });
}

HeaderCache::Header HeaderCache::find(ContainerNumber container) {
  std::unique_lock lock(mutex_);
  read_.wait(lock, [&] { return !reading_.contains(container); });
  const auto it = place_of_.find(container);
  if (it == place_of_.end()) return nullptr;
  headers_.splice(headers_.begin(), headers_, it->second);
  return it->second->second;
}

void HeaderCache::add(ContainerNumber container, const Header& header) {
  const std::lock_guard lock(mutex_);
  add_locked(container, header);
}

void HeaderCache::add_locked(ContainerNumber container, const Header& header) {
  if (place_of_.contains(container)) return;
  headers_.emplace_front(container, header);
  place_of_[container] = headers_.begin();
  bytes_ += memory_of(*header);
  while (bytes_ > bytes_max_ && headers_.size() > 1) {
    bytes_ -= memory_of(*headers_.back().second);
    place_of_.erase(headers_.back().first);
    headers_.pop_back();
  }
}

bool HeaderCache::begin_read(ContainerNumber container) {
  const std::lock_guard lock(mutex_);
  return !place_of_.contains(container) && reading_.insert(container).second;
}

void HeaderCache::end_read(ContainerNumber container, const Header& header) {
  const std::lock_guard lock(mutex_);
  reading_.erase(container);
  if (header) add_locked(container, header);
  read_.notify_all();
}

}  // namespace varve::layout
