// SPDX-License-Identifier: Apache-2.0
// Items in the order of their last use, with stack distances.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace varve::index {

/// An LRU stack of item numbers that computes stack distances in logarithmic time, by a Fenwick
/// tree over the times of use. Not thread-safe.
class RecencyOrder {
 public:
  using Item = std::uint32_t;  ///< Must not be 0.
  using Time = std::uint32_t;

  /// Adds an item as the most recently used item, and returns the time of use. May renumber all
  /// times first: calls `moved(item, time)` for each older item.
  template <typename Moved>
  Time push(Item item, Moved&& moved) {
    VARVE_ASSERT(item != 0);
    if (used_ == items_.size()) pack(moved);
    items_[used_] = item;
    count(used_, 1);
    ++size_;
    return used_++;
  }
  /// Removes the item with this time of use.
  void remove(Time time) {
    items_[time] = 0;
    count(time, static_cast<std::uint32_t>(-1));
    --size_;
  }
  /// Returns the number of items used after the time.
  [[nodiscard]] std::size_t newer_than(Time time) const {
    std::uint32_t until = 0;
    for (std::size_t i = time + 1; i != 0; i &= i - 1) until += sums_[i];
    return size_ - until;
  }
  /// Returns the least recently used item. The order must not be empty.
  [[nodiscard]] Item oldest() {
    while (items_[first_] == 0) ++first_;
    return items_[first_];
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return items_.capacity() * sizeof(Item) + sums_.capacity() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::size_t kTimesMin = 16;

  // Adding -1 as an unsigned number subtracts 1.
  void count(std::size_t time, std::uint32_t change) {
    for (auto i = time + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += change;
  }
  template <typename Moved>
  void pack(Moved&& moved) {
    std::vector<Item> items(std::max(kTimesMin, size_ + size_ / 2));
    Time next = 0;
    for (const Item item : items_) {
      if (item == 0) continue;
      items[next] = item;
      moved(item, next++);
    }
    items_ = std::move(items);
    sums_.assign(items_.size() + 1, 0);
    for (std::size_t i = 1; i < sums_.size(); ++i) {
      sums_[i] += i <= next ? 1 : 0;
      if (const auto parent = i + (i & (~i + 1)); parent < sums_.size()) sums_[parent] += sums_[i];
    }
    used_ = next;
    first_ = 0;
  }

  std::vector<Item> items_;          // By time of use. 0: no item.
  std::vector<std::uint32_t> sums_;  // Fenwick tree over the items.
  Time used_ = 0;                    // End of the times given so far.
  Time first_ = 0;                   // Lower bound of the oldest time.
  std::size_t size_ = 0;
};

}  // namespace varve::index
