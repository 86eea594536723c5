// SPDX-License-Identifier: Apache-2.0
#include "restore/chunk_cache.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace varve::restore {

/// Adds the chunk to the F-chunks or P-chunks according to the next use, and counts the chunk.
void ChunkCache::link(Map::iterator it, std::uint64_t next_use) {
  Chunk& chunk = it->second;
  chunk.next_use = next_use;
  if (next_use != kNever) {
    future_.insert_or_assign(next_use, it->first);
    counters_.future_bytes += chunk.size;
  } else {
    chunk.past = past_.insert(past_.begin(), it->first);
    counters_.past_bytes += chunk.size;
    ++counters_.past_chunks;
  }
}

void ChunkCache::unlink(Map::iterator it) {
  Chunk& chunk = it->second;
  if (chunk.next_use != kNever) {
    future_.erase(chunk.next_use);
    counters_.future_bytes -= chunk.size;
  } else {
    past_.erase(chunk.past);
    counters_.past_bytes -= chunk.size;
    --counters_.past_chunks;
  }
}

void ChunkCache::forget(Map::iterator it) {
  unlink(it);
  const std::size_t bytes = it->second.size + kChunkOverheadBytes;
  bytes_ -= bytes;
  meter_->remove(bytes);
  chunks_.erase(it);
}

/// Makes room for a chunk that is needed at `next_use`. Returns false if every cached chunk is
/// needed sooner.
bool ChunkCache::make_room(std::size_t bytes, std::uint64_t next_use) {
  while (bytes_ + bytes > bytes_max_) {
    if (!past_.empty()) {
      forget(chunks_.find(past_.back()));
      continue;
    }
    if (future_.empty()) return false;
    const auto farthest = std::prev(future_.end());
    if (farthest->first < next_use) return false;
    forget(chunks_.find(farthest->second));
  }
  return true;
}

void ChunkCache::set_bytes_max(std::size_t bytes_max) {
  bytes_max_ = bytes_max;
  static_cast<void>(make_room(0, 0));
}

std::size_t ChunkCache::room() const {
  // A chunk read for the window may evict any P-chunk.
  const std::size_t kept =
      bytes_ - counters_.past_bytes - counters_.past_chunks * kChunkOverheadBytes;
  return bytes_max_ > kept ? bytes_max_ - kept : 0;
}

std::span<const std::byte> ChunkCache::find(const ChunkUse& use) {
  if (chunks_.empty()) return {};
  const auto it = chunks_.find(use.id.value);
  if (it == chunks_.end()) return {};
  return {it->second.bytes.get(), it->second.size};
}

void ChunkCache::on_used(ChunkId id, std::uint64_t next_use) {
  const auto it = chunks_.find(id.value);
  if (it == chunks_.end()) return;
  if (next_use == kNever && !keeps_past_) return forget(it);
  unlink(it);
  link(it, next_use);
}

void ChunkCache::on_ahead(ChunkId id, std::uint64_t position) {
  if (!keeps_past_ || past_.empty()) return;
  const auto it = chunks_.find(id.value);
  if (it == chunks_.end() || it->second.next_use != kNever) return;
  counters_.future_added_bytes += it->second.size;
  unlink(it);
  link(it, position);
}

void ChunkCache::offer(ChunkId id, std::span<const std::byte> raw, std::uint64_t next_use,
                       bool is_used) {
  if (next_use == kNever && !(keeps_past_ && is_used)) return;
  const auto known = chunks_.find(id.value);
  if (known != chunks_.end()) {
    if (known->second.next_use == kNever && next_use != kNever) {
      counters_.future_added_bytes += raw.size();
    }
    unlink(known);
    return link(known, next_use);
  }
  if (next_use != kNever) counters_.future_added_bytes += raw.size();
  const std::size_t bytes = raw.size() + kChunkOverheadBytes;
  if (!make_room(bytes, next_use)) return;
  Chunk chunk;
  chunk.bytes = std::make_unique_for_overwrite<std::byte[]>(raw.size());
  chunk.size = raw.size();
  std::memcpy(chunk.bytes.get(), raw.data(), raw.size());
  link(chunks_.emplace(id.value, std::move(chunk)).first, next_use);
  bytes_ += bytes;
  meter_->add(bytes);
}

}  // namespace varve::restore
