// SPDX-License-Identifier: Apache-2.0
// The placing part of the engine: stored bytes become chunks in areas.
#include "restore/window_engine.h"

namespace varve::restore {

/// Decodes the needed frames of a slice and places the chunks. Returns false if a frame is bad.
bool WindowEngine::place_slice(const Job& job, const SliceBytes& stored, ReadLane& lane,
                               IfBad if_bad) {
  const format::ContainerHeader& header = *job.header;
  bool is_good = true;
  for (std::uint32_t frame = job.slice.first; frame <= job.slice.last; ++frame) {
    if ((*job.needs)[frame] == FrameNeed::kNone) continue;
    if (context_.whole_containers && !cache_->keeps_containers() && !is_used(header, frame)) {
      continue;
    }
    const format::FrameEntry& entry = header.frames[frame];
    // A frame needed as a whole is lent to an area, or decoded directly into the area.
    auto raw = forward_.in_place(header, frame);
    if (!raw.empty() && lend_frame(job, frame, stored, raw)) continue;
    if (raw.empty() && entry.raw_bytes <= lane.frame.size()) {
      raw = lane.frame.first(entry.raw_bytes);
    }
    if (!raw.empty() && context_.reader->decode_once(context_.source->codec(), header, job.slice,
                                                     frame, stored, raw)) {
      place_frame(header, frame, raw);
      continue;
    }
    is_good = false;
    static_cast<void>(context_.reader->drop(*context_.source, header));
    if (if_bad == IfBad::kStop) break;
    mark_frame_bad(header, frame);
  }
  return is_good;
}

/// Lends the stored bytes of a frame to the area that needs the whole frame at `place`. Returns
/// false if the frame must be decoded.
bool WindowEngine::lend_frame(const Job& job, std::uint32_t frame, const SliceBytes& stored,
                              std::span<std::byte> place) {
  if (!stored.holder) return false;
  const auto raw = find_raw_frame(*job.header, job.slice, frame, stored);
  if (raw.empty()) return false;
  {
    const std::lock_guard lock(cache_mutex_);
    forward_.lend(*job.header, frame, raw, stored.holder);
  }
  place_frame(*job.header, frame, raw, place.data());
  return true;
}

/// Copies each chunk of a decoded frame to the chunk's slots, and offers the chunk to the cache.
/// `lent`: the place in an area to which the frame is lent.
void WindowEngine::place_frame(const format::ContainerHeader& header, std::uint32_t frame,
                               std::span<const std::byte> raw, const std::byte* lent) {
  const format::FrameEntry& entry = header.frames[frame];
  const bool keeps_all = cache_->keeps_containers();
  const bool keeps_used = cache_->keeps_used();
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    const format::ChunkEntry& chunk = header.chunks[entry.first_chunk + i];
    const auto bytes = raw.subspan(chunk.frame_offset, chunk.raw_bytes);
    const auto placed = forward_.place(chunks().first_use(chunk.id), header.number, bytes,
                                       ForwardArea::SlotState::kFromDisk,
                                       lent == nullptr ? nullptr : lent + chunk.frame_offset);
    const std::uint64_t next = covered(placed.next_use);
    if (next == kNever && !keeps_all && !(placed.is_used && keeps_used)) continue;
    const std::lock_guard lock(cache_mutex_);
    cache_->offer(chunk.id, bytes, next, placed.is_used);
  }
  if (!keeps_all) return;
  const std::lock_guard lock(cache_mutex_);
  cache_->offer_frame(header, frame, raw);
}

void WindowEngine::mark_frame_bad(const format::ContainerHeader& header, std::uint32_t frame) {
  const format::FrameEntry& entry = header.frames[frame];
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    forward_.mark_bad(chunks().first_use(header.chunks[entry.first_chunk + i].id), header.number);
  }
}

}  // namespace varve::restore
