// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "varve/types.h"

namespace varve::restore {

/// The list of the chunks that the reader will need next, in order, each with its next use. Built
/// in one pass over the recipes, in O(1) per chunk. Positions count chunks from the start of the
/// stream. Allocates 24 bytes per chunk at construction. Not thread-safe.
///
/// Source: ALACC, FAST'18 §4. We differ by a fixed length, which was faster in our measurements.
class LookAheadWindow {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  /// Rounds `chunks_max` down to a power of two.
  explicit LookAheadWindow(std::size_t chunks_max);

  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] bool full() const { return end_ - begin_ == entries_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return entries_.size() * sizeof(Entry) + table_.size() * sizeof(std::uint32_t);
  }

  /// Adds a chunk at end(); the window must not be full.
  void push(ChunkId id);
  /// Removes the chunk at begin(); the window must not be empty.
  void pop();

  [[nodiscard]] ChunkId id(std::uint64_t position) const { return entry(position).id; }
  /// Returns the next position of the same chunk after `position`, or kNever.
  [[nodiscard]] std::uint64_t next_use(std::uint64_t position) const {
    const std::uint32_t next = entry(position).next;
    return next == kNone ? kNever : position_of(next);
  }
  /// Returns the first position in the window that needs `id`, or kNever.
  [[nodiscard]] std::uint64_t first_use(ChunkId id) const {
    const std::uint32_t slot = table_[find(id)];
    return slot == kNone ? kNever : position_of(slot);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Entry {
    ChunkId id;
    std::uint32_t next = kNone;  // Slot of the next use.
    std::uint32_t last = kNone;  // Slot of the last use; valid only at the first use.
  };

  [[nodiscard]] const Entry& entry(std::uint64_t position) const {
    return entries_[position & mask_];
  }
  [[nodiscard]] std::uint64_t position_of(std::uint32_t slot) const {
    return begin_ + ((slot - begin_) & mask_);
  }
  [[nodiscard]] std::size_t home(ChunkId id) const {
    return static_cast<std::size_t>((id.value * 0x9E3779B97F4A7C15ULL) >> table_shift_);
  }
  /// Returns the table cell that holds `id`, or the empty cell for it.
  [[nodiscard]] std::size_t find(ChunkId id) const;
  void erase(std::size_t cell);

  std::vector<Entry> entries_;        // The window, as a ring.
  std::vector<std::uint32_t> table_;  // id → slot of the first use; linear probing.
  std::uint64_t mask_ = 0;
  unsigned table_shift_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace varve::restore
