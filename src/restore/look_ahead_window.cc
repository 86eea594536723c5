// SPDX-License-Identifier: Apache-2.0
#include "restore/look_ahead_window.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace varve::restore {

LookAheadWindow::LookAheadWindow(std::size_t chunks_max) {
  const std::size_t slots = std::bit_floor(std::max<std::size_t>(chunks_max, 16));
  VARVE_ASSERT(slots <= std::size_t{1} << 30);
  entries_.resize(slots);
  table_.assign(2 * slots, kNone);
  mask_ = slots - 1;
  table_shift_ = 64 - static_cast<unsigned>(std::countr_zero(table_.size()));
}

std::size_t LookAheadWindow::find(ChunkId id) const {
  const std::size_t table_mask = table_.size() - 1;
  std::size_t cell = home(id);
  while (table_[cell] != kNone && entries_[table_[cell]].id != id) cell = (cell + 1) & table_mask;
  return cell;
}

void LookAheadWindow::push(ChunkId id) {
  VARVE_ASSERT(!full());
  const auto slot = static_cast<std::uint32_t>(end_ & mask_);
  const std::size_t cell = find(id);
  entries_[slot] = {id, kNone, slot};
  if (table_[cell] == kNone) {
    table_[cell] = slot;
  } else {
    Entry& first = entries_[table_[cell]];
    entries_[first.last].next = slot;
    first.last = slot;
  }
  ++end_;
}

void LookAheadWindow::pop() {
  VARVE_ASSERT(!empty());
  const auto slot = static_cast<std::uint32_t>(begin_ & mask_);
  const Entry& front = entries_[slot];
  const std::size_t cell = find(front.id);
  if (front.next == kNone) {
    erase(cell);
  } else {
    entries_[front.next].last = front.last;
    table_[cell] = front.next;
  }
  ++begin_;
}

void LookAheadWindow::erase(std::size_t cell) {
  // Entries that probed past the cell move up, so the table needs no tombstones.
  const std::size_t table_mask = table_.size() - 1;
  std::size_t hole = cell;
  for (std::size_t at = (cell + 1) & table_mask; table_[at] != kNone; at = (at + 1) & table_mask) {
    const std::size_t wanted = home(entries_[table_[at]].id);
    if (((at - wanted) & table_mask) >= ((at - hole) & table_mask)) {
      table_[hole] = table_[at];
      hole = at;
    }
  }
  table_[hole] = kNone;
}

}  // namespace varve::restore
