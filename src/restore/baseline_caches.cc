// SPDX-License-Identifier: Apache-2.0
#include "restore/baseline_caches.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace varve::restore {

void LruChunkCache::evict(std::size_t bytes) {
  while (bytes_ + bytes > bytes_max_ && !order_.empty()) {
    const std::size_t freed = order_.back().size;
    chunks_.erase(order_.back().id.value);
    order_.pop_back();
    bytes_ -= freed;
    meter_->remove(freed);
  }
}

void LruChunkCache::set_bytes_max(std::size_t bytes_max) {
  bytes_max_ = bytes_max;
  evict(0);
}

std::span<const std::byte> LruChunkCache::find(const ChunkUse& use) {
  const auto it = chunks_.find(use.id.value);
  if (it == chunks_.end()) return {};
  order_.splice(order_.begin(), order_, it->second);
  return {it->second->bytes.get(), it->second->size};
}

void LruChunkCache::offer(ChunkId id, std::span<const std::byte> raw, std::uint64_t /*next_use*/,
                          bool /*is_used*/) {
  const auto known = chunks_.find(id.value);
  if (known != chunks_.end()) {
    order_.splice(order_.begin(), order_, known->second);
    return;
  }
  if (raw.size() > bytes_max_) return;
  evict(raw.size());
  Chunk chunk{id, std::make_unique_for_overwrite<std::byte[]>(raw.size()), raw.size()};
  std::memcpy(chunk.bytes.get(), raw.data(), raw.size());
  order_.push_front(std::move(chunk));
  chunks_.emplace(id.value, order_.begin());
  bytes_ += raw.size();
  meter_->add(raw.size());
}

void ContainerCache::set_bytes_max(std::size_t bytes_max) {
  bytes_max_ = bytes_max;
  evict(0);
}

/// Returns the position of the container's first stretch after the areas under assembly.
std::uint64_t ContainerCache::next_use(ContainerNumber container) const {
  const auto it = uses_.find(container);
  return it == uses_.end() ? kNever : it->second.front();
}

void ContainerCache::on_entered(std::uint64_t position) {
  // A stretch ends where the next stretch begins.
  while (sequence_.size() > 1 && sequence_[1].position <= position) {
    const auto it = uses_.find(sequence_.front().container);
    it->second.pop_front();
    if (it->second.empty()) uses_.erase(it);
    sequence_.pop_front();
  }
}

ContainerCache::Order::iterator ContainerCache::victim() {
  auto best = std::prev(order_.end());
  if (source_ == nullptr) return best;
  std::uint64_t farthest = next_use(best->number);
  for (auto it = best; farthest != kNever && it != order_.begin();) {
    --it;
    const std::uint64_t next = next_use(it->number);
    if (next <= farthest) continue;
    farthest = next;
    best = it;
  }
  return best;
}

void ContainerCache::forget(Order::iterator it) {
  bytes_ -= it->size;
  meter_->remove(it->size);
  containers_.erase(it->number);
  order_.erase(it);
}

void ContainerCache::evict(std::size_t bytes) {
  while (bytes_ + bytes > bytes_max_ && !order_.empty()) forget(victim());
}

/// Makes room for a whole container at once, so that the container's frames do not evict each
/// other. Returns false, and evicts nothing, if the cached containers are needed sooner.
bool ContainerCache::make_room(const format::ContainerHeader& header) {
  const std::uint64_t next = next_use(header.number);
  std::size_t sooner = 0;
  for (const Container& kept : order_) {
    if (next_use(kept.number) < next) sooner += kept.size;
  }
  if (sooner + header.raw_bytes > bytes_max_) return false;
  evict(header.raw_bytes);
  return true;
}

const ContainerCache::Place* ContainerCache::place(const Container& container,
                                                   const ChunkUse& use) const {
  if (use.index >= container.chunks.size()) return nullptr;
  const Place& place = container.chunks[use.index];
  return place.id == use.id && container.frames[place.frame] ? &place : nullptr;
}

bool ContainerCache::contains(const ChunkUse& use) const {
  const auto it = containers_.find(use.container);
  return it != containers_.end() && place(*it->second, use) != nullptr;
}

std::span<const std::byte> ContainerCache::find(const ChunkUse& use) {
  const auto it = containers_.find(use.container);
  if (it == containers_.end()) return {};
  if (it->second != order_.begin()) order_.splice(order_.begin(), order_, it->second);
  const Container& container = *it->second;
  const Place* found = place(container, use);
  if (found == nullptr) return {};
  return {container.frames[found->frame].get() + found->offset, found->bytes};
}

void ContainerCache::on_ahead(ChunkId id, std::uint64_t position) {
  if (source_ == nullptr) return;
  if (!located_ || id < located_->first || id.value - located_->first.value >= located_->count) {
    auto located = source_->locate(id);
    // The engine reports the error when reading the chunk.
    if (!located) return located_.reset();
    located_ = *located;
  }
  if (!sequence_.empty() && sequence_.back().container == located_->container) return;
  sequence_.push_back({position, located_->container});
  uses_[located_->container].push_back(position);
}

void ContainerCache::offer_frame(const format::ContainerHeader& header, std::uint32_t frame,
                                 std::span<const std::byte> raw) {
  auto known = containers_.find(header.number);
  if (known == containers_.end()) {
    if (!make_room(header)) return;
    Container container;
    container.number = header.number;
    container.frames.resize(header.frames.size());
    container.size = header.raw_bytes;
    container.chunks.reserve(header.chunks.size());
    for (const format::ChunkEntry& chunk : header.chunks) {
      container.chunks.push_back({chunk.id, chunk.frame, chunk.frame_offset, chunk.raw_bytes});
    }
    order_.push_front(std::move(container));
    bytes_ += header.raw_bytes;
    meter_->add(header.raw_bytes);
    known = containers_.emplace(header.number, order_.begin()).first;
  }
  auto& bytes = known->second->frames.at(frame);
  if (bytes) return;
  bytes = std::make_unique_for_overwrite<std::byte[]>(raw.size());
  std::memcpy(bytes.get(), raw.data(), raw.size());
}

}  // namespace varve::restore
