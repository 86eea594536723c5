// SPDX-License-Identifier: Apache-2.0
#include "restore/buffer_pool.h"

#include <utility>

namespace varve::restore {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    give_back();
    bytes_ = std::move(other.bytes_);
    capacity_ = other.capacity_;
    pool_ = other.pool_;
  }
  return *this;
}

void Buffer::give_back() {
  if (bytes_) pool_->give_back(std::move(bytes_), capacity_);
}

BufferPool::~BufferPool() {
  for (const Spare& spare : spares_) meter_->remove(spare.capacity);
}

Buffer BufferPool::acquire(std::size_t capacity) {
  {
    const std::lock_guard lock(mutex_);
    for (auto it = spares_.begin(); it != spares_.end(); ++it) {
      // A buffer far larger than asked for would break the caller's budget.
      if (it->capacity < capacity || it->capacity > capacity + capacity / 2) continue;
      Spare spare = std::move(*it);
      spares_.erase(it);
      return {std::move(spare.bytes), spare.capacity, this};
    }
  }
  meter_->add(capacity);
  return {std::make_unique_for_overwrite<std::byte[]>(capacity), capacity, this};
}

void BufferPool::give_back(std::unique_ptr<std::byte[]> bytes, std::size_t capacity) {
  std::unique_ptr<std::byte[]> dropped;
  const std::lock_guard lock(mutex_);
  if (spares_max_ == 0) {
    meter_->remove(capacity);
    return;
  }
  if (spares_.size() == spares_max_) {
    // The oldest spare is the likeliest to have a size that nobody asks for any more.
    meter_->remove(spares_.front().capacity);
    dropped = std::move(spares_.front().bytes);
    spares_.erase(spares_.begin());
  }
  spares_.push_back({std::move(bytes), capacity});
}

}  // namespace varve::restore
