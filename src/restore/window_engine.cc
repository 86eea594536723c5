// SPDX-License-Identifier: Apache-2.0
#include "restore/window_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "restore/baseline_caches.h"
#include "restore/group_cache.h"

namespace varve::restore {
namespace {

// Maximum memory of a chunk in the window: 24 bytes in the window, and 32 in the stream's table of
// files if each file is one chunk.
constexpr std::size_t kWindowBytesPerChunk = 56;
constexpr std::size_t kWindowMemoryShare = 16;
// Length of the window, as a multiple of the memory: as published, and for GroupCache. GroupCache
// gains from a longer window when memory is small.
constexpr std::size_t kWindowFactor = 6;
constexpr std::size_t kLongWindowFactor = 16;
// Memory for slots, plans and headers during the assembly of one area.
constexpr std::size_t kPlanBytes = 512U << 10;
// Share of the memory for concurrent requests, if there are enough workers.
constexpr std::size_t kLaneMemoryShare = 16;
constexpr std::size_t kLanesMax = 8;

// Share of the memory for reads in advance. The share is larger, to keep the disk busy while an
// area is assembled. With half the share, a cold restore of a large file took a tenth longer.
constexpr std::size_t kAheadMemoryShare = 7;
constexpr std::size_t kSlotsAheadMax = 16;
// Number of entered areas if requests join slices. A container has the data of one or two areas, or
// of more if the data is compressed.
constexpr std::size_t kAreasJoined = 4;
// A distant store answers late, but answers many requests at once. The slots also serve the present
// area.
constexpr std::size_t kDistantMemoryShare = 4;
constexpr std::size_t kDistantSlotsMax = 64;
// Distance of announcements after the present area: four containers; 64 from a distant store. A
// distant announcement starts below one container and grows with each area, because the reader may
// want little; EngineContext::reads_all skips the ramp.
constexpr std::uint64_t kBytesAnnounced = 16U << 20;
constexpr std::uint64_t kDistantBytesAnnounced = 256U << 20;
constexpr std::uint64_t kDistantBytesAnnouncedFirst = 2U << 20;

std::size_t window_chunks(const EngineMemory& memory) {
  return memory.total / kWindowMemoryShare / kWindowBytesPerChunk;
}

std::size_t table_bytes(const EngineKind& kind, const EngineMemory& memory) {
  const std::size_t one_area = memory.total / kWindowMemoryShare + kPlanBytes;
  if (kind.forward == EngineKind::Forward::kOneArea) return one_area;
  if (kind.forward == EngineKind::Forward::kOneAssembled) return one_area + 2 * kPlanBytes;
  return one_area + window_chunks(memory) * sizeof(ForwardArea::Slot);
}

std::size_t lanes_for(const EngineContext& context, const EngineMemory& memory) {
  const std::size_t lane_bytes = context.reader->costs().request_bytes_max;
  return std::clamp<std::size_t>(memory.total / kLaneMemoryShare / lane_bytes, 1, kLanesMax);
}

std::size_t slots_ahead(const EngineKind& kind, const EngineContext& context,
                        const EngineMemory& memory) {
  if (kind.forward != EngineKind::Forward::kOneAssembled) return 0;
  const std::size_t slot_bytes = context.reader->costs().request_bytes_max;
  if (context.source->answers_later()) {
    return std::min(memory.total / kDistantMemoryShare / slot_bytes, kDistantSlotsMax);
  }
  return std::min(memory.total / kAheadMemoryShare / slot_bytes, kSlotsAheadMax);
}

Error wrong_length(ChunkId id) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("chunk {}/{} has a different length than its recipe says",
                           static_cast<std::uint32_t>(id.birth()), id.ordinal()));
}

}  // namespace

WindowEngine::WindowEngine(const EngineKind& kind, const EngineContext& context,
                           const EngineMemory& memory)
    : kind_(kind),
      context_(context),
      window_(context.stream, context.source, window_chunks(memory)),
      forward_(&window_.chunks()),
      resolver_(context.source),
      announcer_(context.source, context.workers),
      lanes_(context.slices, context.workers, lanes_for(context, memory),
             context.reader->costs().request_bytes_max),
      ahead_(context.reader, context.source, context.slices, context.ahead_readers,
             {slots_ahead(kind, context, memory), context.reader->costs().request_bytes_max}),
      tables_bytes_(table_bytes(kind, memory)),
      memory_(memory) {
  context_.meter->add(tables_bytes_);
  cache_ = make_cache();
  chunk_cache_ = dynamic_cast<ChunkCache*>(cache_.get());
  if (kind_.forward == EngineKind::Forward::kAdaptive) rules_.emplace(kind_.rules);
  set_request_bytes(kJoinedBytesMax);
}

WindowEngine::~WindowEngine() { context_.meter->remove(tables_bytes_); }

std::unique_ptr<RestoreCache> WindowEngine::make_cache() const {
  switch (kind_.keep) {
    case EngineKind::Keep::kNothing:
      return std::make_unique<NoCache>();
    case EngineKind::Keep::kGroups:
      return std::make_unique<GroupCache>(context_.meter);
    case EngineKind::Keep::kFuture:
    case EngineKind::Keep::kFutureAndPast:
      return std::make_unique<ChunkCache>(context_.meter,
                                          kind_.keep == EngineKind::Keep::kFutureAndPast);
    case EngineKind::Keep::kChunks:
      return std::make_unique<LruChunkCache>(context_.meter);
    case EngineKind::Keep::kContainers:
      return std::make_unique<ContainerCache>(context_.meter, nullptr);
    case EngineKind::Keep::kContainersAhead:
      break;
  }
  return std::make_unique<ContainerCache>(context_.meter, context_.source);
}

ChunkUse WindowEngine::use_of(std::uint64_t at) const {
  const ForwardArea::Slot& slot = forward_.slot(at);
  return {chunks().id(at), slot.container, slot.index};
}

std::uint64_t WindowEngine::covered(std::uint64_t next_use) const {
  return next_use < window_.near_end() ? next_use : kNever;
}

/// Returns the memory for the cache and for all areas of forward assembly but the first.
std::size_t WindowEngine::free_bytes() const {
  const std::size_t taken = memory_.areas + tables_bytes_ + lanes_.bytes() + ahead_.bytes();
  return memory_.total > taken ? memory_.total - taken : 0;
}

void WindowEngine::set_memory(const EngineMemory& memory) {
  memory_ = memory;
  if (area_bytes_ > 0) resize(area_bytes_);
}

void WindowEngine::set_request_bytes(std::size_t bytes) {
  const bool may_join = ahead_.is_usable() && !context_.source->answers_later();
  request_bytes_ = may_join ? std::min(bytes, ahead_.request_bytes_max()) : 0;
  if (!joins_slices()) request_bytes_ = 0;
  ahead_.set_request_bytes(request_bytes_);
  if (plans_areas() && area_bytes_ > 0) sizes_.forward = areas_forward(area_bytes_);
}

/// Sets the size of each part, in areas of `area_bytes`.
void WindowEngine::resize(std::size_t area_bytes) {
  const std::size_t free = free_bytes();
  const std::size_t units = 1 + free / area_bytes;
  if (units != units_ || area_bytes != area_bytes_) {
    area_bytes_ = area_bytes;
    units_ = units;
    switch (kind_.forward) {
      case EngineKind::Forward::kOneArea:
        sizes_ = {1, kWindowFactor * units};
        break;
      case EngineKind::Forward::kOneAssembled:
        sizes_ = {areas_forward(area_bytes), kWindowFactor * units};
        break;
      case EngineKind::Forward::kAllMemory:
        sizes_ = {units, units};
        break;
      case EngineKind::Forward::kAdaptive:
        sizes_ = AlaccRules::initial(units);
        break;
      case EngineKind::Forward::kFixed:
        sizes_.forward = std::clamp<std::size_t>(kind_.sizes.forward, 1, units);
        sizes_.window = std::clamp<std::size_t>(kind_.sizes.window, units, kWindowFactor * units);
        break;
    }
  }
  const auto& areas = forward_.areas();
  // A planned area gets a buffer of `area_bytes` later, so no planned area may be longer.
  std::size_t kept = 0;
  while (kept < std::min(areas.size(), sizes_.forward)) {
    const ForwardArea::Area& area = areas[kept];
    if ((area.bytes ? area.bytes->capacity() : area.size) > area_bytes) break;
    ++kept;
  }
  retreat(kept);
  std::size_t held = 0;
  for (std::size_t i = 1; i < areas.size(); ++i) {
    if (areas[i].bytes) held += areas[i].bytes->capacity();
  }
  if (!plans_areas()) held = std::max(held, (sizes_.forward - 1) * area_bytes);
  cache_->set_bytes_max(free > held ? free - held : 0);
}

/// Returns the number of areas for EngineKind::Forward::kOneAssembled.
std::size_t WindowEngine::areas_forward(std::size_t area_bytes) const {
  if (!context_.source->answers_later()) return joins_slices() ? kAreasJoined : 2;
  return std::max<std::size_t>(1 + ahead_.bytes() / area_bytes, 2);
}

void WindowEngine::look_ahead() {
  // The window is at least one area long, with any amount of memory.
  const std::uint64_t factor = plans_areas() ? kLongWindowFactor : kWindowFactor;
  window_.fill(std::max<std::uint64_t>(factor * memory_.total, area_bytes_));
  const std::uint64_t bytes =
      has_published_sizes() ? std::uint64_t{sizes_.window} * area_bytes_ : kNever;
  window_.extend_near(bytes, [this](std::uint64_t at) { cache_->on_ahead(chunks().id(at), at); });
}

/// Removes areas from the end until `areas` are left. Offers the chunks in their filled slots to
/// the cache.
void WindowEngine::retreat(std::size_t areas) {
  while (forward_.areas().size() > areas) {
    const auto& area = forward_.areas().back();
    for (std::uint64_t at = area.begin.at; area.bytes && at != area.end.at; ++at) {
      const ForwardArea::Slot& slot = forward_.slot(at);
      const bool is_filled = slot.state == ForwardArea::SlotState::kFromDisk ||
                             slot.state == ForwardArea::SlotState::kFromCache;
      if (!is_filled) continue;
      if (cache_->chooses_in_advance()) {
        const std::uint32_t frame = context_.whole_containers ? 0 : slot.frame;
        cache_->on_planned(chunks().id(at), {slot.container, frame, slot.bytes, slot.bytes, at});
        cache_->on_all_planned();
      }
      cache_->offer(chunks().id(at), area.bytes->view(slot.offset, slot.bytes), at, true);
    }
    forward_.pop_back();
  }
  const std::uint32_t end = forward_.number() + static_cast<std::uint32_t>(areas);
  while (!ahead_plans_.empty() && ahead_plans_.back().area >= end) ahead_plans_.pop_back();
  ahead_.forget_from(end);
}

Result<void> WindowEngine::skip_to(std::uint64_t position) {
  retreat(0);
  return window_.skip_to(position, [this](std::uint64_t at) {
    cache_->on_used(chunks().id(at), covered(chunks().next_use(at)));
  });
}

/// Adds a further area with its slots, and fills in the cached chunks. Returns false at the end of
/// the window.
Result<bool> WindowEngine::enter_area(std::size_t bytes_max) {
  resolver_.forget();  // Chunks may have moved since the last area.
  ForwardArea::Area area;
  area.begin = forward_.empty() ? window_.front() : forward_.areas().back().end;
  area.end = area.begin;
  entering_.clear();
  std::uint32_t& size = area.size;
  while (area.end.at != chunks().end()) {
    const ChunkId id = chunks().id(area.end.at);
    const auto place = resolver_.resolve(id);
    if (!place) {
      if (entering_.empty()) return place.error();
      break;  // The chunks before the failed chunk can still be delivered.
    }
    const format::ChunkEntry& entry = place->header->chunks[place->index];
    const StreamRun& run = window_.run(area.end);
    const std::uint64_t run_bytes = area.end.bytes + entry.raw_bytes;
    const bool is_last = area.end.chunk + 1 == run.count;
    if (run_bytes > run.bytes || (is_last && run_bytes != run.bytes) ||
        entry.raw_bytes > bytes_max) {
      if (entering_.empty()) return wrong_length(id);
      break;
    }
    if (size + entry.raw_bytes > bytes_max) break;
    ForwardArea::Slot slot;
    slot.offset = size;
    slot.bytes = entry.raw_bytes;
    slot.container = place->header->number;
    slot.index = place->index;
    slot.frame = entry.frame;
    entering_.push_back(slot);
    size += entry.raw_bytes;
    window_.advance(area.end, entry.raw_bytes);
  }
  if (entering_.empty()) return false;
  const bool is_planned = plans_areas() && !forward_.empty();
  if (!is_planned) area.bytes = make_area(area, bytes_max);
  forward_.push(std::move(area), entering_);
  if (!is_planned) fill_from_cache(forward_.areas().back());
  return true;
}

std::shared_ptr<AssemblyArea> WindowEngine::make_area(const ForwardArea::Area& area,
                                                      std::size_t bytes_max) {
  VARVE_ASSERT(area.size <= bytes_max);
  // A short last area takes a buffer of full size, so that the pool can reuse buffers.
  return std::make_shared<AssemblyArea>(context_.areas->acquire(bytes_max),
                                        window_.stream_position(area.begin), area.size);
}

/// Fills the slots of an area with cached chunks at once, before the next reads can evict the
/// chunks.
void WindowEngine::fill_from_cache(const ForwardArea::Area& area) {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  for (std::uint64_t at = area.begin.at; at != area.end.at; ++at) {
    if (forward_.slot(at).state != ForwardArea::SlotState::kEmpty) continue;
    const auto raw = cache_->find(use_of(at));
    ++(raw.empty() ? misses : hits);
    if (raw.empty()) continue;
    const auto placed = forward_.place(at, std::nullopt, raw, ForwardArea::SlotState::kFromCache);
    cache_->on_used(chunks().id(at), covered(placed.next_use));
  }
  context_.metrics->chunk_cache_hits.add(hits);
  context_.metrics->chunk_cache_misses.add(misses);
}

void WindowEngine::enter_areas(std::size_t bytes_max) {
  enter_error_.reset();
  if (!forward_.empty() && !forward_.areas().front().bytes) {
    forward_.provide(make_area(forward_.areas().front(), bytes_max));
    fill_from_cache(forward_.areas().front());
  }
  // A reader waits for the very first area, so the engine reads nothing for a second area.
  const bool is_first = cycles_ == 0 && !has_published_sizes() && !joins_slices();
  const std::size_t wanted = is_first ? 1 : sizes_.forward;
  while (forward_.areas().size() < wanted) {
    auto entered = enter_area(bytes_max);
    if (!entered) enter_error_ = std::move(entered).error();
    if (!entered || !*entered) return;
  }
}

std::shared_ptr<AssemblyArea> WindowEngine::leave_area() {
  const auto& slots_of = forward_.areas().front();
  for (std::uint64_t at = slots_of.begin.at; at != slots_of.end.at; ++at) {
    const ForwardArea::Slot& slot = forward_.slot(at);
    if (slot.state == ForwardArea::SlotState::kBad) {
      slots_of.bytes->mark_bad(slot.offset, slot.bytes);
    }
  }
  ForwardArea::Area area = forward_.pop_front();
  area.bytes->finish();
  window_.leave(area.end);
  context_.metrics->areas.add();
  return std::move(area.bytes);
}

/// Reports the cycle that ends with the first area, and adapts the sizes by the rules, if any.
void WindowEngine::adapt(const StreamWindow::Cursor& end) {
  EngineCycle report;
  report.number = cycles_++;
  report.sizes = sizes_;
  report.memory = units_;
  report.containers_read = containers_read_;
  const ChunkCache::Counters counters =
      chunk_cache_ != nullptr ? chunk_cache_->counters() : ChunkCache::Counters{};
  report.future_bytes = counters.future_bytes;
  report.past_bytes = counters.past_bytes;
  if (rules_) {
    AlaccCycle cycle;
    cycle.memory = units_;
    cycle.containers_read = containers_read_;
    cycle.chunks = end.at - forward_.begin();
    cycle.future_bytes = counters.future_bytes;
    cycle.past_bytes = counters.past_bytes;
    cycle.past_chunks = counters.past_chunks;
    cycle.future_added_bytes = counters.future_added_bytes - future_added_before_;
    cycle.area_bytes = area_bytes_;
    // Distances count over the whole window, not only over the near part. Otherwise a short window
    // would see only near duplicates. The forward area would then grow and make the window even
    // shorter.
    const std::uint64_t window_chunks = chunks().end() - chunks().begin();
    const std::uint64_t near_chunks = (sizes_.forward + 1) * area_bytes_ * window_chunks /
                                      std::max<std::uint64_t>(window_.bytes(), 1);
    for (std::uint64_t at = forward_.begin(); at != end.at; ++at) {
      cycle.used_cache |= forward_.slot(at).state == ForwardArea::SlotState::kFromCache;
      const std::uint64_t next = chunks().next_use(at);
      if (next == kNever) continue;
      ++cycle.duplicates;
      if (next - at < near_chunks) ++cycle.near_duplicates;
      if (next < window_.near_end()) ++cycle.in_window;
    }
    sizes_ = rules_->next(sizes_, cycle);
    report.rule = rules_->rule();
  }
  future_added_before_ = counters.future_added_bytes;
  if (context_.observer != nullptr) context_.observer->on_cycle(report);
}

/// Announces the containers of about `bytes` from position `from` on.
void WindowEngine::announce(std::uint64_t from, std::uint64_t bytes) {
  const std::uint64_t in_window = chunks().end() - chunks().begin();
  const std::uint64_t chunk_bytes =
      std::max<std::uint64_t>(window_.bytes() / std::max<std::uint64_t>(in_window, 1), 1);
  announcer_.announce(chunks(), from, bytes / chunk_bytes);
}

// Doubles with each of the first areas, and then grows fourfold: the reader reads on.
std::uint64_t WindowEngine::distant_bytes_announced() const {
  if (context_.reads_all) return kDistantBytesAnnounced;
  constexpr std::uint64_t kCyclesOfDoubling = 2;
  constexpr std::uint64_t kCyclesMax = 6;
  const auto cycles = std::min(cycles_, kCyclesMax);
  const auto doublings = cycles + (std::max(cycles, kCyclesOfDoubling) - kCyclesOfDoubling);
  return std::min(kDistantBytesAnnouncedFirst << doublings, kDistantBytesAnnounced);
}

Result<std::shared_ptr<const AssemblyArea>> WindowEngine::assemble(std::size_t bytes_max) {
  resize(bytes_max);
  look_ahead();
  const bool is_distant = context_.source->answers_later();
  if (is_distant) announce(chunks().begin(), distant_bytes_announced());
  enter_areas(bytes_max);
  if (forward_.empty()) {
    if (enter_error_) return *enter_error_;
    if (window_.error()) return *window_.error();
    return std::shared_ptr<const AssemblyArea>();
  }
  containers_read_ = 0;
  if (!is_distant) announce(forward_.areas().front().end.at, kBytesAnnounced);
  cache_->set_area_chunks(forward_.areas().front().end.at - forward_.begin());
  // Before the reads, so that the evictions depend only on the uses after these areas.
  cache_->on_entered(forward_.end());
  read_missing();
  adapt(forward_.areas().front().end);
  return std::shared_ptr<const AssemblyArea>(leave_area());
}

}  // namespace varve::restore
