// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace varve::fs {

/// Buffers for the replies to reads. Reusing a buffer saves the page faults of a new one. Lends as
/// many buffers as requests need at once, and keeps up to kKept free ones. Thread-safe.
class BufferPool {
 public:
  static constexpr std::size_t kBufferBytes = 1 << 20;
  static constexpr std::size_t kKept = 8;  ///< Limit on the number of free buffers.

  /// A buffer in use. Returns the buffer to its pool when destroyed. Lifetime: the pool must
  /// outlive the lease.
  class Lease {
   public:
    Lease(BufferPool& pool, std::unique_ptr<std::byte[]> bytes)
        : pool_(pool), bytes_(std::move(bytes)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (bytes_ != nullptr) pool_.give_back(std::move(bytes_));
    }
    [[nodiscard]] std::byte* data() const { return bytes_.get(); }

   private:
    BufferPool& pool_;
    std::unique_ptr<std::byte[]> bytes_;
  };

  /// Returns a buffer of kBufferBytes, not cleared.
  [[nodiscard]] Lease take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return {*this, std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)};
    }
    auto bytes = std::move(free_.back());
    free_.pop_back();
    return {*this, std::move(bytes)};
  }

 private:
  void give_back(std::unique_ptr<std::byte[]> bytes) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kKept) free_.push_back(std::move(bytes));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> free_;
};

}  // namespace varve::fs
