// SPDX-License-Identifier: Apache-2.0
#include "index/slot_heat.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace varve::index {

SlotHeat::SlotHeat(std::uint32_t step) : step_(step), ring_(kStepsMax * step + 2, kNone) {}

void SlotHeat::push(Slot& first, Slot slot, std::uint64_t expiry) {
  slots_[slot] = {expiry, first, kNone};
  if (first != kNone) slots_[first].previous = slot;
  first = slot;
}

void SlotHeat::link(Slot slot, std::uint64_t expiry) {
  push(list_of(expiry), slot, expiry);
  if (expiry > now_) return;
  ++cold_count_;
  if (coldest_ == kNone) coldest_ = slot;
}

void SlotHeat::remove(Slot slot) {
  const State& state = slots_[slot];
  if (state.expiry <= now_) --cold_count_;
  if (slot == coldest_) coldest_ = state.previous;
  if (state.next != kNone) slots_[state.next].previous = state.previous;
  (state.previous != kNone ? slots_[state.previous].next : list_of(state.expiry)) = state.next;
}

void SlotHeat::add(Slot slot, std::uint32_t heat) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  link(slot, now_ + std::min(heat, kStepsMax * step_));
}

void SlotHeat::use(Slot slot, bool is_new) {
  VARVE_ASSERT(slot < slots_.size());
  const auto gained = is_new ? step_ : std::min(kStepsMax * step_, heat(slot) + step_);
  remove(slot);
  ++now_;
  // The slots of the present access become cold.
  Slot expired = std::exchange(ring_[now_ % ring_.size()], kNone);
  while (expired != kNone) {
    const Slot one = std::exchange(expired, slots_[expired].next);
    link(one, slots_[one].expiry);
  }
  link(slot, now_ + gained);
}

}  // namespace varve::index
