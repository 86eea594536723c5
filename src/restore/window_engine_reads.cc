// SPDX-License-Identifier: Apache-2.0
// The reading part of the engine: plans requests, and fetches slices.
#include <algorithm>
#include <utility>

#include "restore/window_engine.h"

namespace varve::restore {
namespace {

// Attempts to read a chunk that the arranger moves again and again. After the last attempt, the
// engine marks the chunk bad, and the reader fetches the chunk by random access.
constexpr int kRoundsMax = 4;
// Distance up to which the engine reads frames for later, in multiples of the memory. Chunks needed
// later are often evicted before use.
constexpr std::uint64_t kLaterFactor = 2;
// Up to this size, a container is read by one request if the cache has room for the chunks needed
// later. A small version of a large series has small containers that all areas need.
constexpr std::size_t kSmallContainerBytes = 1U << 20;

}  // namespace

std::vector<std::uint64_t> WindowEngine::empty_slots(const ForwardArea::Area& area) const {
  std::vector<std::uint64_t> empty;
  for (std::uint64_t at = area.begin.at; at != area.end.at; ++at) {
    if (forward_.slot(at).state == ForwardArea::SlotState::kEmpty) empty.push_back(at);
  }
  return empty;
}

/// Reads until the first area has no empty slot.
void WindowEngine::read_missing() {
  for (int round = 0;; ++round) {
    missing_ = empty_slots(forward_.areas().front());
    if (missing_.empty()) return;
    if (round == kRoundsMax) break;
    stale_.clear();
    while (!ahead_plans_.empty() && ahead_plans_.front().area <= forward_.number()) {
      present_plan_ = std::move(ahead_plans_.front());
      ahead_plans_.pop_front();
    }
    plan_reads();
    if (round == 0) plan_ahead();
    lanes_.run(jobs_.size(),
               [this](std::size_t job, ReadLane& lane) { read_job(jobs_[job], lane); });
    jobs_.clear();
    if (round == 0) ahead_.finish_area(forward_.number());
    if (!stale_.empty()) locate_again();
  }
  for (const std::uint64_t at : missing_) forward_.mark_bad(at, forward_.slot(at).container);
}

/// Sorts the positions by the place of their chunks, and calls plan(positions) for each container.
template <typename Plan>
void WindowEngine::for_each_container(std::vector<std::uint64_t>& missing, const Plan& plan) {
  const auto before = [this](std::uint64_t a, std::uint64_t b) {
    const ForwardArea::Slot& x = forward_.slot(a);
    const ForwardArea::Slot& y = forward_.slot(b);
    return x.container != y.container ? x.container < y.container : x.index < y.index;
  };
  if (!std::is_sorted(missing.begin(), missing.end(), before)) {
    std::sort(missing.begin(), missing.end(), before);
  }
  const auto container_of = [&](std::size_t i) { return forward_.slot(missing[i]).container; };
  for (std::size_t i = 0; i < missing.size();) {
    std::size_t j = i;
    while (j < missing.size() && container_of(j) == container_of(i)) ++j;
    plan(std::span<const std::uint64_t>(missing).subspan(i, j - i));
    i = j;
  }
}

void WindowEngine::plan_reads() {
  room_ = cache_->room();
  const std::uint64_t area_chunks = forward_.areas().front().end.at - forward_.begin();
  later_end_ = forward_.assembled_end() + kLaterFactor * units_ * area_chunks;
  planned_room_ = std::max(room_, std::min(free_bytes() / 4, area_bytes_));
  for_each_container(missing_, [this](const auto& missing) { plan_container(missing); });
  if (cache_->chooses_in_advance()) announce_chunks();
}

/// Announces the chunks of the jobs that the window needs again.
void WindowEngine::announce_chunks() {
  for (const Job& job : jobs_) {
    const format::ContainerHeader& header = *job.header;
    for (std::uint32_t frame = job.slice.first; frame <= job.slice.last; ++frame) {
      if ((*job.needs)[frame] == FrameNeed::kNone) continue;
      const format::FrameEntry& entry = header.frames[frame];
      PlannedChunk planned;
      planned.container = header.number;
      planned.frame = context_.whole_containers ? 0 : frame;
      planned.read_bytes = context_.whole_containers ? header.data_bytes : entry.stored_bytes;
      for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
        const format::ChunkEntry& chunk = header.chunks[entry.first_chunk + i];
        std::uint64_t use = chunks().first_use(chunk.id);
        while (use < forward_.assembled_end()) use = chunks().next_use(use);
        planned.next_use = covered(use);
        if (planned.next_use == kNever) continue;
        planned.bytes = chunk.raw_bytes;
        cache_->on_planned(chunk.id, planned);
      }
    }
  }
  cache_->on_all_planned();
}

/// Plans the slices of the empty slots of the later areas without a plan, with the same rules as
/// plan_container().
void WindowEngine::plan_ahead() {
  if (!ahead_.is_usable()) return;
  const std::uint32_t present = forward_.number();
  std::vector<AheadReads::Planned> planned;
  // The reads of the present area need not wait for a lane each, and may be part of longer
  // requests.
  if (reads_all_ahead()) {
    for (const Job& one : jobs_) planned.push_back({one.header, one.slice, present, one.windows});
  }
  const auto& areas = forward_.areas();
  for (std::uint32_t area = present + 1; area - present < areas.size(); ++area) {
    if (!ahead_plans_.empty() && ahead_plans_.back().area >= area) continue;
    ahead_plans_.push_back({area, {}});
    auto missing = empty_slots(areas[area - present]);
    std::erase_if(missing, [this](std::uint64_t at) { return cache_->contains(use_of(at)); });
    for_each_container(missing, [&](const auto& places) { plan_ahead(places, planned); });
  }
  // The last area may share containers with the next area, if there is a next area.
  const std::uint32_t count = static_cast<std::uint32_t>(areas.size());
  const bool is_open = joins_slices() && count > 1 && count == sizes_.forward;
  ahead_.plan(present, std::move(planned), present + count - (is_open ? 2 : 1));
}

/// Plans the slices of one container for the last area of `ahead_plans_`, except the frames read by
/// an earlier area.
void WindowEngine::plan_ahead(std::span<const std::uint64_t> places,
                              std::vector<AheadReads::Planned>& planned) {
  const ContainerNumber container = forward_.slot(places.front()).container;
  const auto header = resolver_.header(container);
  if (!header) return;
  std::vector<FrameNeed> needs((*header)->frames.size(), FrameNeed::kNone);
  for (const std::uint64_t at : places) {
    const ForwardArea::Slot& slot = forward_.slot(at);
    if (is_read_before(container, slot.frame)) continue;
    if (verify_place(**header, slot.index, chunks().id(at))) needs[slot.frame] = FrameNeed::kNow;
  }
  mark_later(**header, needs);
  AheadPlan& plan = ahead_plans_.back();
  const auto slices = plan_slices_of(**header, needs);
  const auto windows = windows_of(**header);
  for (const Slice& slice : slices) planned.push_back({*header, slice, plan.area, windows});
  drop_unfetched(slices, needs);
  plan.needs.emplace(container, std::move(needs));
}

/// Returns whether the plan of the present area, or of an area before the last of `ahead_plans_`,
/// reads the frame.
bool WindowEngine::is_read_before(ContainerNumber container, std::uint32_t frame) const {
  const auto job = std::ranges::lower_bound(  // The jobs are sorted by container.
      jobs_, container, {}, [](const Job& one) { return one.header->number; });
  if (job != jobs_.end() && job->header->number == container &&
      (*job->needs)[frame] != FrameNeed::kNone) {
    return true;
  }
  return std::any_of(ahead_plans_.begin(), ahead_plans_.end() - 1, [&](const AheadPlan& plan) {
    const auto found = plan.needs.find(container);
    return found != plan.needs.end() && found->second[frame] != FrameNeed::kNone;
  });
}

/// Plans the slices of one container. A request of several slices has short slices, so that several
/// lanes decode them. The last frames of a small container are read in the same request even if
/// only later areas need them.
std::vector<Slice> WindowEngine::plan_slices_of(const format::ContainerHeader& header,
                                                const std::vector<FrameNeed>& needs) const {
  ReadCosts costs = context_.reader->costs();
  if (!joins_slices()) return plan_slices(header, needs, costs);
  const bool is_small = header.data_bytes <= std::min(kSmallContainerBytes, request_bytes_);
  costs.request_bytes_max = is_small ? data_end(header) : kSliceBytesMax;
  return split_slices(header, needs, plan_slices(header, needs, costs), kSliceBytesMax);
}

/// Returns the windows of a sealed container with chunks of the look-ahead window. The end of an
/// area must not limit the windows: requests would reveal the compression of a piece of a file.
SealedWindows::Set WindowEngine::windows_of(const format::ContainerHeader& header) {
  constexpr std::size_t kKnownMax = 16;
  SealedWindows::Set windows;
  if (!header.seal) return windows;
  const auto known = std::ranges::find(windows_known_, header.number,
                                       &decltype(windows_known_)::value_type::first);
  if (known != windows_known_.end()) return known->second;
  for (std::uint32_t frame = 0; frame < header.frames.size(); ++frame) {
    if (is_used(header, frame)) SealedWindows::add_windows(header, {frame, frame}, windows);
  }
  windows_known_.emplace_back(header.number, windows);
  if (windows_known_.size() > kKnownMax) windows_known_.pop_front();
  return windows;
}

/// Clears the needs of the frames that no slice fetches, so that a later area's plan reads the
/// frames in advance. A plan with short requests to a local disk leaves the frames to the later
/// area, without a read in advance: otherwise the engine would read most of the files that a reader
/// skips.
void WindowEngine::drop_unfetched(const std::vector<Slice>& slices,
                                  std::vector<FrameNeed>& needs) const {
  if (!reads_all_ahead()) return;
  std::uint32_t frame = 0;
  for (const Slice& slice : slices) {
    while (frame < slice.first) needs[frame++] = FrameNeed::kNone;
    frame = slice.last + 1;
  }
  while (frame < needs.size()) needs[frame++] = FrameNeed::kNone;
}

/// Plans the requests to one container for the empty slots of the first area.
void WindowEngine::plan_container(std::span<const std::uint64_t> missing) {
  const auto header = resolver_.header(forward_.slot(missing.front()).container);
  if (!header) {
    if (header.error().code() == ErrorCode::kStale) {
      stale_.push_back(forward_.slot(missing.front()).container);
    } else {
      for (const std::uint64_t at : missing) forward_.mark_bad(at, forward_.slot(at).container);
    }
    return;
  }
  const bool is_whole = context_.whole_containers || cache_->keeps_containers();
  std::vector<FrameNeed> needs((*header)->frames.size(),
                               is_whole ? FrameNeed::kNow : FrameNeed::kNone);
  bool has_any = false;
  for (const std::uint64_t at : missing) {
    const ForwardArea::Slot& slot = forward_.slot(at);
    if (!verify_place(**header, slot.index, chunks().id(at))) {
      forward_.mark_bad(at, forward_.slot(at).container);
      continue;
    }
    needs[slot.frame] = FrameNeed::kNow;
    has_any = true;
  }
  if (!has_any) return;
  ++containers_read_;
  if (!is_whole && !copy_plan(**header, needs)) mark_later(**header, needs);
  const auto slices = plan_slices_of(**header, needs);
  drop_unfetched(slices, needs);
  const auto shared = std::make_shared<const std::vector<FrameNeed>>(std::move(needs));
  const auto windows = windows_of(**header);
  for (const Slice& slice : slices) jobs_.push_back({*header, slice, shared, windows});
}

/// Adds the needs of the plan made in advance for the present area, so that the slices match.
/// Returns false if there is no plan.
bool WindowEngine::copy_plan(const format::ContainerHeader& header,
                             std::vector<FrameNeed>& needs) const {
  if (present_plan_.area != forward_.number()) return false;
  const auto plan = present_plan_.needs.find(header.number);
  if (plan == present_plan_.needs.end() || plan->second.size() != needs.size()) return false;
  for (std::size_t frame = 0; frame < needs.size(); ++frame) {
    needs[frame] = std::max(needs[frame], plan->second[frame]);
  }
  return true;
}

/// Marks the frames that the window needs later and that are near enough to a needed frame for a
/// common request.
void WindowEngine::mark_later(const format::ContainerHeader& header,
                              std::vector<FrameNeed>& needs) {
  const std::uint32_t gap_max = context_.reader->costs().gap_bytes_max;
  const auto count = static_cast<std::uint32_t>(needs.size());
  bool is_near = false;
  std::uint32_t reached = 0;  // End of the last needed frame.
  for (std::uint32_t frame = 0; frame < count; ++frame) {
    const format::FrameEntry& entry = header.frames[frame];
    is_near = is_near && entry.offset - reached <= gap_max;
    if (needs[frame] == FrameNeed::kNone && is_near && is_wanted(header, frame)) {
      needs[frame] = FrameNeed::kLater;
    }
    if (needs[frame] == FrameNeed::kNone) continue;
    is_near = true;
    reached = frame_end(entry);
  }
  is_near = false;
  for (std::uint32_t frame = count; frame-- > 0;) {
    const format::FrameEntry& entry = header.frames[frame];
    is_near = is_near && reached - frame_end(entry) <= gap_max;
    if (needs[frame] == FrameNeed::kNone && is_near && is_wanted(header, frame)) {
      needs[frame] = FrameNeed::kLater;
    }
    if (needs[frame] == FrameNeed::kNone) continue;
    is_near = true;
    reached = entry.offset;
  }
}

/// Returns whether a chunk of the frame fits an empty slot, or the frame's later chunks fit the
/// cache's room.
bool WindowEngine::is_wanted(const format::ContainerHeader& header, std::uint32_t frame) {
  const format::FrameEntry& entry = header.frames[frame];
  std::size_t bytes = 0;
  bool fills_slot = false;
  bool fills_planned = false;
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    const format::ChunkEntry& chunk = header.chunks[entry.first_chunk + i];
    std::uint64_t use = chunks().first_use(chunk.id);
    if (use == kNever) continue;
    fills_slot |= forward_.has_empty(use, header.number);
    while (use < forward_.assembled_end()) use = chunks().next_use(use);
    if (covered(use) == kNever) continue;
    if (cache_->contains({chunk.id, header.number, entry.first_chunk + i})) continue;
    fills_planned |= use < forward_.end();
    if (plans_areas() && use > later_end_) continue;
    bytes += chunk.raw_bytes + ChunkCache::kChunkOverheadBytes;
  }
  // The cache makes room for the chunks of planned areas, within reason.
  std::size_t& room = fills_planned ? planned_room_ : room_;
  const bool has_room = bytes > 0 && bytes <= room;
  if (has_room) room -= bytes;
  return fills_slot || has_room;
}

bool WindowEngine::is_used(const format::ContainerHeader& header, std::uint32_t frame) const {
  const format::FrameEntry& entry = header.frames[frame];
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    if (chunks().first_use(header.chunks[entry.first_chunk + i].id) != kNever) return true;
  }
  return false;
}

/// Reads a slice; all but short slices past the page cache. The engine verifies the bytes and
/// copies them to their areas, and a second copy in the page cache would cost as much again.
Result<SliceBytes> WindowEngine::fetch(const Job& job, std::span<std::byte> room) {
  const format::ContainerHeader& header = *job.header;
  const SealedWindows::Plan plan{job.windows};
  if (slice_bytes(header, job.slice) >= kDirectSliceBytes) {
    return context_.reader->read_once(*context_.source, header, job.slice, room, plan);
  }
  return context_.reader->read(*context_.source, header, job.slice, room, plan);
}

/// Fetches a slice and places its chunks. Thread-safe.
void WindowEngine::read_job(const Job& job, ReadLane& lane) {
  const format::ContainerHeader& header = *job.header;
  {
    const auto lease = ahead_.take(header, job.slice);
    if (!lease.bytes().empty() && place_slice(job, lease.slice(), lane, IfBad::kStop)) return;
  }
  const std::size_t bytes = slice_bytes(header, job.slice);
  auto room = lane.stored;
  if (layout::room_for(bytes) > room.size()) {
    if (layout::room_for(bytes) > lane.larger.capacity()) {
      lane.larger = context_.slices->acquire(layout::room_for(bytes));
    }
    room = lane.larger.first(lane.larger.capacity());
  }
  auto read = fetch(job, room);
  // Bytes of a distant store may have been damaged on their way, so the slice is fetched once more.
  if (read && context_.source->answers_later()) {
    if (place_slice(job, {read->bytes, nullptr, read->unread}, lane, IfBad::kStop)) return;
    read = fetch(job, room);
  }
  if (read) {
    static_cast<void>(place_slice(job, {read->bytes, nullptr, read->unread}, lane, IfBad::kMark));
  } else if (read.error().code() == ErrorCode::kStale) {
    const std::lock_guard lock(cache_mutex_);
    stale_.push_back(header.number);
  } else {
    for (std::uint32_t frame = job.slice.first; frame <= job.slice.last; ++frame) {
      if ((*job.needs)[frame] != FrameNeed::kNone) mark_frame_bad(header, frame);
    }
  }
}

/// Finds the present places of the chunks in removed containers.
void WindowEngine::locate_again() {
  resolver_.forget();
  for (std::uint64_t at = forward_.begin(); at != forward_.end(); ++at) {
    ForwardArea::Slot& slot = forward_.slot(at);
    if (slot.state != ForwardArea::SlotState::kEmpty) continue;
    if (std::find(stale_.begin(), stale_.end(), slot.container) == stale_.end()) continue;
    const auto place = resolver_.resolve(chunks().id(at));
    if (!place) {
      // The chunk has moved again. The next round locates it.
      if (place.error().code() != ErrorCode::kStale)
        forward_.mark_bad(at, forward_.slot(at).container);
      continue;
    }
    const format::ChunkEntry& entry = place->header->chunks[place->index];
    slot.container = place->header->number;
    slot.index = place->index;
    slot.frame = entry.frame;
    if (entry.raw_bytes != slot.bytes) forward_.mark_bad(at, forward_.slot(at).container);
  }
}

}  // namespace varve::restore
