// SPDX-License-Identifier: Apache-2.0
#include "restore/engine_alacc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace varve::restore {
namespace {

constexpr std::uint64_t kNever = LookAheadWindow::kNever;
// What a chunk costs at most while it is in the window: 24 bytes there, and 32 in the
// stream's table of files if each file is one chunk.
constexpr std::size_t kWindowBytesPerChunk = 56;
constexpr std::size_t kWindowMemoryShare = 16;
// Length of the window, in multiples of the memory. Longer ones gained nothing.
constexpr std::size_t kWindowFactor = 6;
// Slots, sorted indexes and the heads at hand while an area is assembled.
constexpr std::size_t kPlanBytes = 512U << 10;

std::uint64_t average_chunk(const StreamRun& run) { return run.bytes / run.count; }

}  // namespace

AlaccEngine::AlaccEngine(const EngineContext& context, const EngineMemory& memory)
    : context_(context),
      window_(memory.total / kWindowMemoryShare / kWindowBytesPerChunk),
      cache_(context.meter),
      resolver_(context.source),
      stored_(context.slices->acquire(kSliceBytesMax)),
      frame_(context.slices->acquire(format::kFrameRawBytesMax)),
      tables_bytes_(memory.total / kWindowMemoryShare + kPlanBytes) {
  context_.meter->add(tables_bytes_);
  set_memory(memory);
}

AlaccEngine::~AlaccEngine() { context_.meter->remove(tables_bytes_); }

void AlaccEngine::set_memory(const EngineMemory& memory) {
  const std::size_t taken = memory.areas + tables_bytes_ + stored_.capacity() + frame_.capacity();
  cache_.set_bytes_max(memory.total > taken ? memory.total - taken : 0);
  window_bytes_max_ = std::uint64_t{kWindowFactor} * memory.total;
}

bool AlaccEngine::pull_run() {
  if (stream_ended_) return false;
  auto run = context_.stream->next();
  if (!run) stream_error_ = std::move(run).error();
  stream_ended_ = !run || !run->has_value();
  if (stream_ended_) return false;
  if (runs_.empty()) {
    front_chunks_ = 0;
    front_bytes_ = 0;
    position_ = (*run)->position;
  }
  runs_.push_back(**run);
  back_chunks_ = 0;
  return true;
}

void AlaccEngine::fill_window() {
  while (!window_.full() && window_bytes_ < window_bytes_max_) {
    if (runs_.empty() || back_chunks_ == runs_.back().count) {
      if (!pull_run()) return;
    }
    const StreamRun& run = runs_.back();
    while (back_chunks_ < run.count && !window_.full() && window_bytes_ < window_bytes_max_) {
      window_.push(run.first.plus(back_chunks_++));
      window_bytes_ += average_chunk(run);
    }
  }
}

/// Takes the chunk at the window's begin out of everything that counts it.
void AlaccEngine::leave_chunk() {
  window_.pop();
  window_bytes_ -= average_chunk(runs_.front());
  if (++front_chunks_ == runs_.front().count) {
    runs_.pop_front();
    front_chunks_ = 0;
    front_bytes_ = 0;
  }
}

Result<void> AlaccEngine::skip_to(std::uint64_t position) {
  while (!runs_.empty() || pull_run()) {
    const StreamRun run = runs_.front();
    if (run.position + run.bytes > position) return {};
    const std::uint32_t present = runs_.size() == 1 ? back_chunks_ : run.count;
    for (std::uint32_t i = front_chunks_; i < present; ++i) {
      const std::uint64_t next = window_.next_use(window_.begin());
      if (next == kNever) {
        cache_.erase(window_.begin());
      } else {
        cache_.move(window_.begin(), next);
      }
      window_.pop();
      window_bytes_ -= average_chunk(run);
    }
    runs_.pop_front();
    front_chunks_ = 0;
    front_bytes_ = 0;
    if (runs_.empty()) back_chunks_ = 0;
    position_ = run.position + run.bytes;
  }
  if (stream_error_) return *stream_error_;
  return {};
}

Result<void> AlaccEngine::plan(std::size_t bytes_max) {
  slots_.clear();
  resolver_.forget();
  area_begin_ = window_.begin();
  std::size_t run = 0;
  std::uint32_t chunk = front_chunks_;
  std::uint64_t run_bytes = front_bytes_;
  std::uint32_t size = 0;
  for (std::uint64_t at = area_begin_; at != window_.end(); ++at) {
    const auto place = resolver_.resolve(window_.id(at));
    if (!place) {
      if (slots_.empty()) return place.error();
      break;  // The chunks before it can still be delivered.
    }
    const format::ChunkEntry& entry = place->head->chunks[place->index];
    const bool is_last = ++chunk == runs_[run].count;
    run_bytes += entry.raw_bytes;
    if (run_bytes > runs_[run].bytes || (is_last && run_bytes != runs_[run].bytes) ||
        entry.raw_bytes > bytes_max) {
      if (!slots_.empty()) break;
      return Error(ErrorCode::kCorrupt,
                   fmt::format("the length of chunk {}/{} is not what its recipe says",
                               static_cast<std::uint32_t>(entry.id.birth()), entry.id.ordinal()));
    }
    if (size + entry.raw_bytes > bytes_max) break;
    slots_.push_back({size, entry.raw_bytes, place->head->number, place->index, entry.frame,
                      SlotState::kUnplanned});
    size += entry.raw_bytes;
    front_bytes_ = run_bytes;
    if (is_last) {
      ++run;
      chunk = 0;
      run_bytes = 0;
    }
  }
  area_end_ = area_begin_ + slots_.size();
  return {};
}

/// Eager fill: every place in the area where a cached chunk belongs is filled now, before
/// what is read for this area can evict it.
void AlaccEngine::fill_from_cache() {
  while (!cache_.empty() && cache_.nearest() < area_end_) {
    const std::uint64_t use = cache_.nearest();
    const auto bytes = cache_.at(use);
    std::uint64_t at = use;
    for (; at < area_end_; at = window_.next_use(at)) {
      Slot& slot = slots_[at - area_begin_];
      if (slot.bytes == bytes.size()) {
        std::memcpy(area_->at(slot.offset), bytes.data(), bytes.size());
      } else {
        area_->mark_bad(slot.offset, slot.bytes);
      }
      slot.state = SlotState::kFilled;
    }
    if (at == kNever) {
      cache_.erase(use);
    } else {
      cache_.move(use, at);
    }
  }
}

void AlaccEngine::collect_needed() {
  needed_.clear();
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state != SlotState::kUnplanned) continue;
    slots_[i].state = SlotState::kNeeded;
    needed_.push_back(i);
    for (std::uint64_t at = window_.next_use(area_begin_ + i); at < area_end_;
         at = window_.next_use(at)) {
      slots_[at - area_begin_].state = SlotState::kFollower;
    }
  }
  const auto before = [this](std::uint32_t a, std::uint32_t b) {
    const Slot& x = slots_[a];
    const Slot& y = slots_[b];
    return x.container != y.container ? x.container < y.container : x.index < y.index;
  };
  if (!std::is_sorted(needed_.begin(), needed_.end(), before)) {
    std::sort(needed_.begin(), needed_.end(), before);
  }
}

void AlaccEngine::mark_bad(SlotIndexes needed) {
  for (const std::uint32_t i : needed) {
    for (std::uint64_t at = area_begin_ + i; at < area_end_; at = window_.next_use(at)) {
      const Slot& slot = slots_[at - area_begin_];
      area_->mark_bad(slot.offset, slot.bytes);
    }
  }
}

void AlaccEngine::read_container(SlotIndexes needed) {
  const auto head = resolver_.head(slots_[needed.front()].container);
  if (!head) return mark_bad(needed);
  const auto& frames = (*head)->frames;
  const auto frame_of = [&](std::size_t i) { return slots_[needed[i]].frame; };
  for (std::size_t i = 0; i < needed.size();) {
    Slice slice{frame_of(i), frame_of(i)};
    std::size_t j = i + 1;
    for (; j < needed.size(); ++j) {
      const std::uint32_t frame = frame_of(j);
      if (frames[frame].offset > frame_end(frames[slice.last]) + kSliceGapBytesMax) break;
      if (frame != slice.last && slice_bytes(**head, {slice.first, frame}) > kSliceBytesMax) {
        break;
      }
      slice.last = frame;
    }
    const auto frames_end = static_cast<std::uint32_t>(frames.size());
    const std::uint32_t last = extend(**head, slice, j < needed.size() ? frame_of(j) : frames_end);
    read_slice(**head, {slice.first, last}, needed.subspan(i, j - i));
    i = j;
  }
}

/// How far a slice should reach beyond what this area needs: over frames that the window
/// needs later, while there is room to keep them. Stops before frame `end`.
std::uint32_t AlaccEngine::extend(const format::ContainerHead& head, Slice slice,
                                  std::uint32_t end) {
  std::size_t room = cache_.room();
  std::uint32_t last = slice.last;
  while (last + 1 < end) {
    const format::FrameEntry& next = head.frames[last + 1];
    if (next.raw_bytes > room || slice_bytes(head, {slice.first, last + 1}) > kSliceBytesMax ||
        !is_wanted(head, last + 1)) {
      break;
    }
    room -= next.raw_bytes;
    ++last;
  }
  return last;
}

bool AlaccEngine::is_wanted(const format::ContainerHead& head, std::uint32_t frame) const {
  const format::FrameEntry& entry = head.frames[frame];
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    const std::uint64_t use = window_.first_use(head.chunks[entry.first_chunk + i].id);
    // What this area needs has come already, or is in a slice of its own.
    if (use != kNever && use >= area_end_ && !cache_.contains(use)) return true;
  }
  return false;
}

void AlaccEngine::read_slice(const format::ContainerHead& head, Slice slice, SlotIndexes needed) {
  const std::size_t bytes = slice_bytes(head, slice);
  if (bytes > stored_.capacity()) return mark_bad(needed);
  const auto stored = stored_.first(bytes);
  if (!context_.reader->read(*context_.source, head, slice, stored)) return mark_bad(needed);
  std::size_t i = 0;
  for (std::uint32_t frame = slice.first; frame <= slice.last; ++frame) {
    std::size_t j = i;
    while (j < needed.size() && slots_[needed[j]].frame == frame) ++j;
    if (j > i || is_wanted(head, frame)) {
      place_frame(head, slice, frame, stored, needed.subspan(i, j - i));
    }
    i = j;
  }
}

void AlaccEngine::place_frame(const format::ContainerHead& head, Slice slice, std::uint32_t frame,
                              std::span<const std::byte> stored, SlotIndexes needed) {
  const format::FrameEntry& entry = head.frames[frame];
  if (entry.raw_bytes > frame_.capacity()) return mark_bad(needed);
  // A frame that is needed as it stands, chunk after chunk, is decoded where it belongs.
  bool in_order = needed.size() == entry.chunk_count && !needed.empty();
  for (std::size_t i = 1; in_order && i < needed.size(); ++i) {
    in_order = needed[i] == needed[i - 1] + 1;
  }
  const auto raw = in_order ? std::span(area_->at(slots_[needed.front()].offset), entry.raw_bytes)
                            : frame_.first(entry.raw_bytes);
  if (!decode_slice_frame(head, slice, frame, stored, raw)) return mark_bad(needed);
  if (!in_order) {
    for (const std::uint32_t i : needed) {
      const Slot& slot = slots_[i];
      std::memcpy(area_->at(slot.offset), raw.data() + head.chunks[slot.index].frame_offset,
                  slot.bytes);
    }
  }
  for (const std::uint32_t i : needed) spread(i);
  if (needed.size() < entry.chunk_count) keep_rest(head, frame);
}

/// Copies a chunk that has come into the area to its other places there, and keeps it if
/// the window needs it once more.
void AlaccEngine::spread(std::uint32_t index) {
  std::uint64_t at = window_.next_use(area_begin_ + index);
  if (at == kNever) return;
  const Slot& slot = slots_[index];
  for (; at < area_end_; at = window_.next_use(at)) {
    std::memcpy(area_->at(slots_[at - area_begin_].offset), area_->at(slot.offset), slot.bytes);
  }
  if (at != kNever) cache_.insert(at, {area_->at(slot.offset), slot.bytes});
}

/// Keeps the chunks of the decoded frame that later areas need.
void AlaccEngine::keep_rest(const format::ContainerHead& head, std::uint32_t frame) {
  const format::FrameEntry& entry = head.frames[frame];
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    const format::ChunkEntry& chunk = head.chunks[entry.first_chunk + i];
    const std::uint64_t use = window_.first_use(chunk.id);
    if (use == kNever || use < area_end_ || cache_.contains(use)) continue;
    cache_.insert(use, frame_.first(entry.raw_bytes).subspan(chunk.frame_offset, chunk.raw_bytes));
  }
}

void AlaccEngine::leave_area() {
  const std::uint64_t run_bytes = front_bytes_;
  for (std::size_t i = 0; i < slots_.size(); ++i) leave_chunk();
  // plan() has counted the bytes of the run that the area ends in.
  front_bytes_ = front_chunks_ == 0 ? 0 : run_bytes;
  position_ = area_->end();
}

Result<std::shared_ptr<const AssemblyArea>> AlaccEngine::assemble(std::size_t bytes_max) {
  fill_window();
  if (window_.empty()) {
    if (stream_error_) return *stream_error_;
    return std::shared_ptr<const AssemblyArea>();
  }
  VARVE_TRY(plan(bytes_max));
  const std::size_t size = slots_.back().offset + slots_.back().bytes;
  // A short last area takes a buffer of full size, so that buffers can be used again.
  area_ = std::make_shared<AssemblyArea>(context_.areas->acquire(bytes_max), position_, size);
  fill_from_cache();
  collect_needed();
  for (std::size_t i = 0; i < needed_.size();) {
    std::size_t j = i;
    while (j < needed_.size() && slots_[needed_[j]].container == slots_[needed_[i]].container) ++j;
    read_container(SlotIndexes(needed_).subspan(i, j - i));
    i = j;
  }
  leave_area();
  area_->finish();
  return std::shared_ptr<const AssemblyArea>(std::move(area_));
}

}  // namespace varve::restore
