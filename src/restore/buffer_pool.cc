// SPDX-License-Identifier: Apache-2.0
#include "restore/buffer_pool.h"

#include <utility>

namespace varve::restore {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    give_back();
    own_ = std::exchange(other.own_, {});
    memory_ = std::exchange(other.memory_, {});
    pool_ = other.pool_;
  }
  return *this;
}

void Buffer::give_back() {
  if (own_) {
    pool_->give_back(std::move(*own_));
  } else if (!memory_.empty()) {
    pool_->give_back(memory_);
  }
}

BufferPool::~BufferPool() {
  for (const base::AlignedBuffer& spare : spares_) meter_->remove(spare.size());
  if (slots_) meter_->remove(kSlotsBytes);
}

Buffer BufferPool::acquire(std::size_t capacity) {
  {
    const std::lock_guard lock(mutex_);
    if (slot_bytes_ > 0 && capacity <= slot_bytes_) {
      if (!slots_) {
        slots_.emplace(kSlotsBytes);
        meter_->add(kSlotsBytes);
        for (auto rest = slots_->span(); rest.size() >= slot_bytes_;
             rest = rest.subspan(slot_bytes_)) {
          free_slots_.push_back(rest.first(slot_bytes_));
        }
      }
      if (!free_slots_.empty()) {
        const auto slot = free_slots_.back();
        free_slots_.pop_back();
        return {slot, this};
      }
    }
    for (auto it = spares_.begin(); it != spares_.end(); ++it) {
      // A buffer far larger than requested would exceed the caller's memory budget.
      if (it->size() < capacity || it->size() > capacity + capacity / 2) continue;
      base::AlignedBuffer spare = std::move(*it);
      spares_.erase(it);
      return {std::move(spare), this};
    }
  }
  meter_->add(capacity);
  return {base::AlignedBuffer(capacity), this};
}

void BufferPool::give_back(std::span<std::byte> slot) {
  const std::lock_guard lock(mutex_);
  free_slots_.push_back(slot);
}

void BufferPool::give_back(base::AlignedBuffer bytes) {
  std::optional<base::AlignedBuffer> dropped;  // Unmapped after the lock is released.
  const std::lock_guard lock(mutex_);
  if (spares_max_ == 0) {
    meter_->remove(bytes.size());
    return;
  }
  if (spares_.size() == spares_max_) {
    // The oldest spare is the most likely to have a size that is no longer requested.
    meter_->remove(spares_.front().size());
    dropped = std::move(spares_.front());
    spares_.erase(spares_.begin());
  }
  spares_.push_back(std::move(bytes));
}

}  // namespace varve::restore
