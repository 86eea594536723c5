// SPDX-License-Identifier: Apache-2.0
#include "restore/ahead_reads.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace varve::restore {
namespace {

/// Returns whether the frames of a slice are at the same place in both headers. The header may have
/// been read again in the meantime. If the content changed in any further way, the checksums of the
/// frames do not match.
bool is_same_place(const format::ContainerHeader& a, const format::ContainerHeader& b,
                   Slice slice) {
  return a.number == b.number && slice.last < a.frames.size() && slice.last < b.frames.size() &&
         slice_begin(a, slice) == slice_begin(b, slice) &&
         slice_bytes(a, slice) == slice_bytes(b, slice);
}

bool is_same(const AheadReads::Planned& planned, const format::ContainerHeader& header,
             Slice slice) {
  return planned.slice.first == slice.first && planned.slice.last == slice.last &&
         is_same_place(*planned.header, header, slice);
}

/// Returns whether a sealed container is best read as a whole: if the slices need at least half of
/// its windows. A request for the slices would reveal the frame boundaries (SealedWindows).
bool needs_whole(const format::ContainerHeader& header, std::span<const Slice> slices) {
  SealedWindows::Set windows;
  for (const Slice slice : slices) SealedWindows::add_windows(header, slice, windows);
  return 2 * windows.count() * SealedWindows::kWindowBytes >= data_end(header);
}

/// Returns the range of both slices, and of the frames between them.
Slice joined(Slice a, Slice b) { return {std::min(a.first, b.first), std::max(a.last, b.last)}; }

}  // namespace

struct AheadReads::State {
  SliceReader* reader = nullptr;
  layout::ChunkSource* source = nullptr;
  base::ThreadPool* workers = nullptr;
  Buffer memory;
  std::size_t memory_bytes = 0;

  std::mutex mutex;  // Taken before the workers' queue lock; no further lock is taken under it.
  std::condition_variable changed;
  std::vector<Slot> slots;  // Constant size.
  PlannedSlices planned;    // Slices waiting for a slot, in the order of their areas.
  std::uint32_t last = 0;   // Last area with slices that may begin a request.
  std::size_t request_bytes = 0;
  std::size_t reading = 0;
  bool is_closed = false;
};

AheadReads::AheadReads(SliceReader* reader, layout::ChunkSource* source, BufferPool* buffers,
                       base::ThreadPool* workers, const Sizes& sizes) {
  if ((workers == nullptr && !source->answers_later()) || sizes.slots == 0) return;
  state_ = std::make_shared<State>();
  state_->reader = reader;
  state_->source = source;
  state_->workers = workers;
  state_->memory_bytes = sizes.slots * layout::room_for(sizes.slice_bytes);
  state_->memory = buffers->acquire(state_->memory_bytes);
  state_->slots.resize(sizes.slots);
}

AheadReads::~AheadReads() {
  if (!state_) return;
  Lock lock(state_->mutex);
  state_->is_closed = true;
  state_->planned.clear();
  state_->changed.wait(lock, [this] { return state_->reading == 0; });
  const Buffer memory = std::move(state_->memory);
}

std::size_t AheadReads::bytes() const { return state_ ? state_->memory.capacity() : 0; }

// Half of the memory, so that one request is read while the areas consume the previous request.
std::size_t AheadReads::request_bytes_max() const {
  const std::size_t half = state_ ? state_->memory_bytes / 2 : 0;
  return half > 2 * layout::kRoomAlignment ? half - 2 * layout::kRoomAlignment : 0;
}

void AheadReads::set_request_bytes(std::size_t bytes) {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->request_bytes = std::min(bytes, request_bytes_max());
}

void AheadReads::plan(std::uint32_t present, std::vector<Planned> next, std::uint32_t last) {
  if (!state_) return;
  Lock lock(state_->mutex);
  auto& planned = state_->planned;
  state_->last = last;
  // The plan of the present area is known now, and replaces the plan made in advance.
  std::erase_if(planned, [present](const Planned& one) { return one.area <= present; });
  std::erase_if(next, [this](const Planned& one) {
    // The request limit may have grown since the memory was allocated.
    if (layout::room_for(slice_bytes(*one.header, one.slice)) > state_->memory_bytes) return true;
    // A request may have read the slice already: in advance, or as a gap between wanted slices.
    Slot* const slot = find_slot(*one.header, one.slice);
    if (slot == nullptr) return false;
    const auto is_known = [&](const Planned& part) {
      return is_same(part, *one.header, one.slice);
    };
    if (std::ranges::none_of(slot->parts, is_known)) slot->parts.push_back(one);
    return true;
  });
  const auto later =
      std::ranges::find_if(next, [present](const Planned& one) { return one.area > present; });
  planned.insert(planned.end(), std::make_move_iterator(later),
                 std::make_move_iterator(next.end()));
  planned.insert(planned.begin(), std::make_move_iterator(next.begin()),
                 std::make_move_iterator(later));
  start(state_, lock);
}

void AheadReads::forget_from(std::uint32_t area) {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->planned, [area](const Planned& one) { return one.area >= area; });
  for (Slot& slot : state_->slots) {
    if (slot.state != SlotState::kQueued) continue;
    std::erase_if(slot.parts, [area](const Planned& one) { return one.area >= area; });
    release_if_done(slot);
  }
}

void AheadReads::finish_area(std::uint32_t area) {
  if (!state_) return;
  Lock lock(state_->mutex);
  for (Slot& slot : state_->slots) {
    std::erase_if(slot.parts, [area](const Planned& one) { return one.area <= area; });
    release_if_done(slot);
  }
  start(state_, lock);
}

/// Returns memory not used by any slot, or an empty span.
std::span<std::byte> AheadReads::find_room(State& state, std::size_t bytes) {
  std::vector<std::span<std::byte>> used;
  for (const Slot& slot : state.slots) {
    if (!slot.room.empty()) used.push_back(slot.room);
  }
  std::ranges::sort(used, {}, [](const auto& one) { return one.data(); });
  auto free = state.memory.first(state.memory_bytes);
  for (const auto& one : used) {
    const auto gap = static_cast<std::size_t>(one.data() - free.data());
    if (gap >= bytes) break;
    free = free.subspan(gap + one.size());
  }
  const bool fits = free.size() >= bytes;
  return fits ? free.first(bytes) : std::span<std::byte>();
}

/// Returns the reader's needs in a sealed container according to the planned slices.
SealedWindows::Plan AheadReads::plan_of(const State& state, const format::ContainerHeader& header) {
  SealedWindows::Plan plan;
  for (const Planned& one : state.planned) {
    if (is_same_place(*one.header, header, one.slice)) plan.wanted |= one.windows;
  }
  return plan;
}

/// Makes a request of a planned slice and of the planned slices beside it, and sets the slot's
/// state. Returns false if the slot or the memory is not free.
bool AheadReads::assign(State& state, Slot& slot, PlannedSlices::iterator first, SlotState to) {
  if (slot.state != SlotState::kFree) return false;
  const format::ContainerHeader& header = *first->header;
  Slice request = first->slice;
  const auto windows = header.seal ? plan_of(state, header) : SealedWindows::Plan();
  if (state.request_bytes > 0) {
    std::vector<Slice> others;
    for (const Planned& one : state.planned) {
      if (is_same_place(*one.header, header, one.slice)) others.push_back(one.slice);
    }
    const std::size_t gap_max = state.reader->costs().gap_bytes_max;
    const auto add = [&](Slice other) {
      const Slice both = joined(request, other);
      const std::size_t apart = slice_bytes(header, both) -
                                std::min(slice_bytes(header, both),
                                         slice_bytes(header, request) + slice_bytes(header, other));
      if (apart <= gap_max && slice_bytes(header, both) <= state.request_bytes) request = both;
    };
    std::ranges::sort(others, {}, &Slice::first);
    for (const Slice other : others) {
      if (other.first > request.first) add(other);
    }
    for (auto other = others.rbegin(); other != others.rend(); ++other) add(*other);
    if (header.seal && data_end(header) <= state.request_bytes && needs_whole(header, others)) {
      request = {0, static_cast<std::uint32_t>(header.frames.size()) - 1};
    }
  }
  const auto room = find_room(state, layout::room_for(slice_bytes(header, request)));
  if (room.empty()) return false;
  slot.header = first->header;
  slot.request = request;
  slot.room = room;
  slot.windows = windows;
  slot.state = to;
  const auto is_part = [&](const Planned& one) {
    return one.slice.first >= request.first && one.slice.last <= request.last &&
           is_same_place(*one.header, *slot.header, one.slice);
  };
  std::ranges::copy_if(state.planned, std::back_inserter(slot.parts), is_part);
  std::erase_if(state.planned, is_part);
  return true;
}

bool AheadReads::assign_next(State& state, Slot& slot, SlotState to) {
  return !state.planned.empty() && state.planned.front().area <= state.last &&
         assign(state, slot, state.planned.begin(), to);
}

/// Starts to read planned slices until no slot is free. May release the lock for a while.
void AheadReads::start(const std::shared_ptr<State>& state, Lock& lock) {
  if (state->is_closed) return;
  if (state->source->answers_later()) {
    submit(state, lock);
    return;
  }
  for (Slot& slot : state->slots) {
    if (!assign_next(*state, slot, SlotState::kQueued)) continue;
    // By then, take() may have read the request, and the slot may serve the next request.
    state->workers->run([state, &slot] {
      Lock inner(state->mutex);
      if (!state->is_closed && slot.state == SlotState::kQueued) read(state, slot, inner);
    });
  }
}

/// Submits planned slices for all free slots, in one batch.
void AheadReads::submit(const std::shared_ptr<State>& state, Lock& lock) {
  std::vector<SliceReader::Read> reads;
  std::vector<Slot*> slots;
  for (Slot& slot : state->slots) {
    if (!assign_next(*state, slot, SlotState::kReading)) continue;
    ++state->reading;
    reads.push_back({slot.header, slot.request, slot.room, &slot.lent});
    slots.push_back(&slot);
  }
  if (reads.empty()) return;
  lock.unlock();  // The source may call back in this thread.
  state->reader->read_many(*state->source, reads,
                           [state, slots](std::size_t at, Result<std::span<const std::byte>> got) {
                             Lock done(state->mutex);
                             finish(state, *slots[at],
                                    got ? Result(SliceBytes{*got}) : std::move(got).error(), done);
                           });
  lock.lock();
}

/// Ends the reading of a slot, and starts to read the next slices.
void AheadReads::finish(const std::shared_ptr<State>& state, Slot& slot, Result<SliceBytes> got,
                        Lock& lock) {
  // After a failure, the caller of take() reads the slice again and gets the error.
  slot.bytes = got ? got->bytes : std::span<const std::byte>();
  if (got) slot.unread = std::move(got->unread);
  slot.state = SlotState::kRead;
  release_if_done(slot);
  start(state, lock);
  --state->reading;
  state->changed.notify_all();
}

/// Reads the request of a slot in this thread. Releases the lock during the read.
void AheadReads::read(const std::shared_ptr<State>& state, Slot& slot, Lock& lock) {
  slot.state = SlotState::kReading;
  ++state->reading;
  lock.unlock();
  auto got =
      state->reader->read_once(*state->source, *slot.header, slot.request, slot.room, slot.windows);
  if (got && got->holder) {
    // The windows stay cached for the next requests; the slot has its own memory.
    std::memcpy(slot.room.data(), got->bytes.data(), got->bytes.size());
    got->bytes = slot.room.first(got->bytes.size());
  }
  lock.lock();
  finish(state, slot, std::move(got), lock);
}

/// Frees a slot if no slice of it is wanted or lent, unless it is being read.
void AheadReads::release_if_done(Slot& slot) {
  if (slot.state == SlotState::kReading || !slot.parts.empty() || slot.leases > 0) return;
  slot = {};
}

/// Returns the slot with the slice in its request, or nullptr.
AheadReads::Slot* AheadReads::find_slot(const format::ContainerHeader& header, Slice slice) const {
  const auto has_slice = [&](const Slot& slot) {
    return slot.state != SlotState::kFree && slot.request.first <= slice.first &&
           slot.request.last >= slice.last && is_same_place(*slot.header, header, slice);
  };
  const auto found = std::ranges::find_if(state_->slots, has_slice);
  return found == state_->slots.end() ? nullptr : &*found;
}

/// Gives a free slot to the request of a planned slice, and removes the slice from the planned
/// slices: the caller reads the request. Returns nullptr if no slot is free or the slice is not
/// planned.
AheadReads::Slot* AheadReads::assign_planned(const format::ContainerHeader& header,
                                             Slice slice) const {
  const auto planned = std::ranges::find_if(
      state_->planned, [&](const Planned& one) { return is_same(one, header, slice); });
  if (planned == state_->planned.end()) return nullptr;
  for (Slot& slot : state_->slots) {
    if (assign(*state_, slot, planned, SlotState::kQueued)) return &slot;
  }
  state_->planned.erase(planned);
  return nullptr;
}

AheadReads::Lease AheadReads::take(const format::ContainerHeader& header, Slice slice) {
  if (!state_) return {};
  Lock lock(state_->mutex);
  Slot* slot = find_slot(header, slice);
  if (slot == nullptr) slot = assign_planned(header, slice);
  if (slot == nullptr) return {};
  std::erase_if(slot->parts, [&](const Planned& one) { return is_same(one, header, slice); });
  ++slot->leases;
  if (slot->state == SlotState::kQueued) read(state_, *slot, lock);
  state_->changed.wait(lock, [slot] { return slot->state == SlotState::kRead; });
  if (slot->bytes.empty()) return {state_, slot, {}};
  const std::size_t begin = slice_begin(header, slice) - slice_begin(*slot->header, slot->request);
  const std::size_t end = begin + slice_bytes(header, slice);
  return {state_,
          slot,
          {slot->bytes.subspan(begin, end - begin), slot->lent.holder,
           slot->unread.within(begin, end)}};
}

AheadReads::Lease::~Lease() {
  if (!state_) return;
  Lock lock(state_->mutex);
  --slot_->leases;
  release_if_done(*slot_);
  start(state_, lock);
}

}  // namespace varve::restore
