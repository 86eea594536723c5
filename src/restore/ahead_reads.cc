// SPDX-License-Identifier: Apache-2.0
#include "restore/ahead_reads.h"

#include <algorithm>
#include <utility>

namespace varve::restore {
namespace {

bool is_same(const AheadReads::Planned& planned, const format::ContainerHeader& header,
             Slice slice) {
  // The header may have been read again in the meantime. If its content changed, the checksums of
  // the frames do not match.
  return planned.header->number == header.number && planned.slice.first == slice.first &&
         planned.slice.last == slice.last &&
         slice_bytes(*planned.header, slice) == slice_bytes(header, slice);
}

}  // namespace

struct AheadReads::State {
  SliceReader* reader = nullptr;
  layout::ChunkSource* source = nullptr;
  base::ThreadPool* workers = nullptr;
  Buffer memory;

  std::mutex mutex;  // Taken before the workers' queue lock; no other lock is taken under it.
  std::condition_variable changed;
  std::vector<Slot> slots;
  std::deque<Planned> planned;  // Slices that wait for a free slot, in the order of their areas.
  std::size_t reading = 0;
  bool is_closed = false;
};

AheadReads::AheadReads(SliceReader* reader, layout::ChunkSource* source, BufferPool* buffers,
                       base::ThreadPool* workers, std::size_t slots, std::size_t slice_bytes) {
  if ((workers == nullptr && !source->answers_later()) || slots == 0) return;
  state_ = std::make_shared<State>();
  state_->reader = reader;
  state_->source = source;
  state_->workers = workers;
  const std::size_t room = layout::room_for(slice_bytes);
  state_->memory = buffers->acquire(slots * room);
  for (std::size_t i = 0; i < slots; ++i) {
    state_->slots.emplace_back().room = state_->memory.first(slots * room).subspan(i * room, room);
  }
}

AheadReads::~AheadReads() {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  state_->is_closed = true;
  state_->planned.clear();
  state_->changed.wait(lock, [this] { return state_->reading == 0; });
  const Buffer memory = std::move(state_->memory);
}

std::size_t AheadReads::bytes() const { return state_ ? state_->memory.capacity() : 0; }

void AheadReads::plan(std::uint32_t present, std::vector<Planned> next) {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  auto& planned = state_->planned;
  // The plan of the present area is known now, and replaces the one made in advance.
  std::erase_if(planned, [present](const Planned& one) { return one.area <= present; });
  std::erase_if(next, [this](const Planned& one) {
    // The limit of a request may have grown since the slots were made.
    const std::size_t room = layout::room_for(slice_bytes(*one.header, one.slice));
    if (room > state_->slots.front().room.size()) return true;
    // A slice of the present area may have been read in advance.
    return state_->source->answers_later() &&
           std::ranges::any_of(state_->slots, [&one](const Slot& slot) {
             return slot.is_wanted && is_same(slot.planned, *one.header, one.slice);
           });
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
}

void AheadReads::finish_area(std::uint32_t area) {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  for (Slot& slot : state_->slots) {
    if (slot.planned.area > area) continue;
    slot.is_wanted = false;
    release_if_done(slot);
  }
  start(state_, lock);
}

/// Gives the next planned slice to a slot and sets the slot's state. Returns false if the slot is
/// not free.
bool AheadReads::assign(State& state, Slot& slot, SlotState to) {
  if (slot.state != SlotState::kFree) return false;
  slot.planned = std::move(state.planned.front());
  state.planned.pop_front();
  slot.state = to;
  slot.is_wanted = true;
  return true;
}

/// Starts to read planned slices until no slot is free. May release the lock for a while.
void AheadReads::start(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>& lock) {
  if (state->source->answers_later()) {
    submit(state, lock);
    return;
  }
  for (std::size_t i = 0; i < state->slots.size() && !state->planned.empty(); ++i) {
    if (!assign(*state, state->slots[i], SlotState::kQueued)) continue;
    state->workers->run([state, i] { read(state, i); });
  }
}

/// Submits as many planned slices as there are free slots, in one batch.
void AheadReads::submit(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>& lock) {
  std::vector<SliceReader::Read> reads;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < state->slots.size() && !state->planned.empty(); ++i) {
    Slot& slot = state->slots[i];
    if (!assign(*state, slot, SlotState::kReading)) continue;
    ++state->reading;
    reads.push_back({slot.planned.header, slot.planned.slice, slot.room});
    numbers.push_back(i);
  }
  if (reads.empty()) return;
  lock.unlock();  // The source may call back in this thread.
  state->reader->read_many(
      *state->source, reads,
      [state, numbers](std::size_t at, Result<std::span<const std::byte>> got) {
        std::unique_lock done(state->mutex);
        finish(state, state->slots[numbers[at]], std::move(got), done);
      });
  lock.lock();
}

/// Ends the reading of a slot, and starts to read the next slice.
void AheadReads::finish(const std::shared_ptr<State>& state, Slot& slot,
                        Result<std::span<const std::byte>> got,
                        std::unique_lock<std::mutex>& lock) {
  // On a failure, the caller of take() reads the slice again and gets the error.
  slot.bytes = got ? *got : std::span<const std::byte>();
  slot.state = SlotState::kRead;
  release_if_done(slot);
  if (!state->is_closed) start(state, lock);
  --state->reading;
  state->changed.notify_all();
}

void AheadReads::read(const std::shared_ptr<State>& state, std::size_t number) {
  Slot& slot = state->slots[number];
  std::unique_lock lock(state->mutex);
  if (state->is_closed || !slot.is_wanted) {
    // take() found the slice still queued, and its caller reads it directly.
    slot.state = SlotState::kFree;
    if (!state->is_closed) start(state, lock);
    return;
  }
  slot.state = SlotState::kReading;
  ++state->reading;
  lock.unlock();
  auto got =
      state->reader->read_once(*state->source, *slot.planned.header, slot.planned.slice, slot.room);
  lock.lock();
  finish(state, slot, std::move(got), lock);
}

/// Frees a slot that was read and that nobody wants or holds. A queued slot becomes free when its
/// worker task runs.
void AheadReads::release_if_done(Slot& slot) {
  if (slot.state != SlotState::kRead || slot.is_wanted || slot.is_lent) return;
  slot.state = SlotState::kFree;
  slot.planned = {};
  slot.bytes = {};
}

AheadReads::Lease AheadReads::take(const format::ContainerHeader& header, Slice slice) {
  if (!state_) return {};
  std::unique_lock lock(state_->mutex);
  for (std::size_t i = 0; i < state_->slots.size(); ++i) {
    Slot& slot = state_->slots[i];
    if (!slot.is_wanted || !is_same(slot.planned, header, slice)) continue;
    slot.is_wanted = false;
    if (slot.state == SlotState::kQueued) return {};  // Reading directly is quicker.
    slot.is_lent = true;
    state_->changed.wait(lock, [&slot] { return slot.state == SlotState::kRead; });
    return {state_, i, slot.bytes};
  }
  // The caller reads a slice for which no slot was free.
  std::erase_if(state_->planned,
                [&](const Planned& planned) { return is_same(planned, header, slice); });
  return {};
}

AheadReads::Lease::~Lease() {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  Slot& slot = state_->slots[slot_];
  slot.is_lent = false;
  release_if_done(slot);
  start(state_, lock);
}

}  // namespace varve::restore
