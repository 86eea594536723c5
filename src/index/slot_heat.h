// SPDX-License-Identifier: Apache-2.0
// The heat of the slots of a bin (Zero-Chunk): the time since the last use, counted in accesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace varve::index {

/// Number of a slot in a bin.
using Slot = std::uint32_t;

/// Counts the heat of slots. A use of a slot adds `step`, up to kStepsMax times `step`. Each use of
/// a different slot subtracts 1, down to 0: then the slot is *cold*.
///
/// Gives the same heats as the published scan, but in constant time; the published scan subtracts 1
/// from all slots except the used slot at each access. A slot stores the access at which it becomes
/// cold, and a ring has a list of slots for each of the next accesses. Not thread-safe.
class SlotHeat {
 public:
  static constexpr std::uint32_t kStepsMax = 16;
  static constexpr Slot kNone = UINT32_MAX;

  /// `step` is at least 1.
  explicit SlotHeat(std::uint32_t step);

  /// Adds the next slot, or a removed slot, with the given heat. Adding counts as no access.
  void add(Slot slot, std::uint32_t heat);
  void remove(Slot slot);
  /// Counts an access to an added slot. `is_new` sets the slot's heat to one step.
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
  std::vector<Slot> ring_;  // For each of the next accesses, the first slot that becomes cold.
  Slot cold_ = kNone;       // The last slot that became cold.
  Slot coldest_ = kNone;    // The end of the list of cold slots.
  std::size_t cold_count_ = 0;
};

}  // namespace varve::index
