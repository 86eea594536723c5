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
  std::deque<Planned> planned;  // Slices that wait for a free slot.
  std::uint64_t area = 0;       // Number of the area that `planned` is for.
  std::size_t reading = 0;
  bool is_closed = false;
};

AheadReads::AheadReads(SliceReader* reader, layout::ChunkSource* source, BufferPool* buffers,
                       base::ThreadPool* workers, std::size_t slots, std::size_t slice_bytes) {
  if (workers == nullptr || slots == 0) return;
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

void AheadReads::plan(std::vector<Planned> next) {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  ++state_->area;
  state_->planned.assign(std::make_move_iterator(next.begin()),
                         std::make_move_iterator(next.end()));
  start(state_, lock);
}

void AheadReads::finish_area() {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  for (Slot& slot : state_->slots) {
    if (slot.area >= state_->area) continue;
    slot.is_wanted = false;
    release_if_done(slot);
  }
  start(state_, lock);
}

/// Queues planned slices on the workers until no slot is free.
void AheadReads::start(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>&) {
  for (std::size_t i = 0; i < state->slots.size() && !state->planned.empty(); ++i) {
    Slot& slot = state->slots[i];
    if (slot.state != SlotState::kFree) continue;
    slot.planned = std::move(state->planned.front());
    state->planned.pop_front();
    slot.area = state->area;
    slot.state = SlotState::kQueued;
    slot.is_wanted = true;
    state->workers->run([state, i] { read(state, i); });
  }
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
  // On a failure, the caller of take() reads the slice again and gets the error.
  slot.bytes = got ? *got : std::span<const std::byte>();
  slot.state = SlotState::kRead;
  --state->reading;
  release_if_done(slot);
  if (!state->is_closed) start(state, lock);
  state->changed.notify_all();
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
