// SPDX-License-Identifier: Apache-2.0
#include "restore/chunk_cache.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace varve::restore {

ChunkCache::~ChunkCache() { meter_->remove(bytes_); }

void ChunkCache::forget(Map::iterator it) {
  bytes_ -= it->second.size;
  meter_->remove(it->second.size);
  chunks_.erase(it);
}

void ChunkCache::set_bytes_max(std::size_t bytes_max) {
  bytes_max_ = bytes_max;
  while (bytes_ > bytes_max_) forget(std::prev(chunks_.end()));
}

std::span<const std::byte> ChunkCache::at(std::uint64_t next_use) const {
  const Chunk& chunk = chunks_.at(next_use);
  return {chunk.bytes.get(), chunk.size};
}

void ChunkCache::insert(std::uint64_t next_use, std::span<const std::byte> bytes) {
  while (bytes_ + bytes.size() > bytes_max_) {
    if (chunks_.empty()) return;
    const auto farthest = std::prev(chunks_.end());
    if (farthest->first < next_use) return;
    forget(farthest);
  }
  Chunk chunk{std::make_unique_for_overwrite<std::byte[]>(bytes.size()), bytes.size()};
  std::memcpy(chunk.bytes.get(), bytes.data(), bytes.size());
  if (!chunks_.try_emplace(next_use, std::move(chunk)).second) return;
  bytes_ += bytes.size();
  meter_->add(bytes.size());
}

void ChunkCache::move(std::uint64_t from, std::uint64_t to) {
  auto node = chunks_.extract(from);
  if (node.empty()) return;
  node.key() = to;
  const auto size = node.mapped().size;
  if (!chunks_.insert(std::move(node)).inserted) {
    bytes_ -= size;
    meter_->remove(size);
  }
}

void ChunkCache::erase(std::uint64_t next_use) {
  const auto it = chunks_.find(next_use);
  if (it != chunks_.end()) forget(it);
}

}  // namespace varve::restore
