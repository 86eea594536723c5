// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace varve::fs {

/// Buffers for read replies, kept so that their pages are not mapped again for each request.
/// As many exist as requests are answered at once; few are kept beyond that. Thread-safe.
class BufferPool {
 public:
  static constexpr std::size_t kBufferBytes = 1 << 20;
  static constexpr std::size_t kKept = 8;

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
