// SPDX-License-Identifier: Apache-2.0
// The heat of the slots of a bin (Zero-Chunk): how long ago each was used, counted in accesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace varve::index {

/// Number of a slot in a bin.
using Slot = std::uint32_t;

/// Counts the heat of slots. A slot that is used gains `step`, up to kStepsMax times that, and
/// each use of another slot takes 1 from it, down to 0: then it is *cold*.
///
/// Gives the same heats as the published scan, which takes 1 from every other slot at each access,
/// but in constant time: a slot stores the access at which it becomes cold, and a ring has a list
/// of slots for each of the next accesses. Not thread-safe.
class SlotHeat {
 public:
  static constexpr std::uint32_t kStepsMax = 16;
  static constexpr Slot kNone = UINT32_MAX;

  /// `step` is at least 1.
  explicit SlotHeat(std::uint32_t step);

  /// Adds the next slot, or one that was removed, with this heat. That is no access.
  void add(Slot slot, std::uint32_t heat);
  void remove(Slot slot);
  /// Counts an access to a slot that was added. `is_new` sets its heat to one step.
  void use(Slot slot, bool is_new = false);

  [[nodiscard]] std::uint32_t heat(Slot slot) const {
    const auto expiry = slots_[slot].expiry;
    return expiry > now_ ? static_cast<std::uint32_t>(expiry - now_) : 0;
  }
  [[nodiscard]] std::size_t cold() const { return cold_count_; }
  /// Returns the slot that has been cold for the longest time; kNone if none is cold.
  [[nodiscard]] Slot coldest() const { return coldest_; }
  [[nodiscard]] std::uint32_t step() const { return step_; }
  [[nodiscard]] std::size_t bytes() const {
    return slots_.capacity() * sizeof(State) + ring_.capacity() * sizeof(Slot);
  }

 private:
  struct State {
    std::uint64_t expiry = 0;  // Access after which the slot is cold.
    Slot next = kNone;
    Slot previous = kNone;
  };
  [[nodiscard]] Slot& list_of(std::uint64_t expiry) {
    return expiry > now_ ? ring_[expiry % ring_.size()] : cold_;
  }
  void link(Slot slot, std::uint64_t expiry);
  void push(Slot& first, Slot slot, std::uint64_t expiry);

  std::uint32_t step_;
  std::uint64_t now_ = 0;  // Number of accesses.
  std::vector<State> slots_;
  std::vector<Slot> ring_;  // First slot that becomes cold at each of the next accesses.
  Slot cold_ = kNone;       // The slot that became cold last.
  Slot coldest_ = kNone;    // The end of that list.
  std::size_t cold_count_ = 0;
};

}  // namespace varve::index
