// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "restore/memory_meter.h"

namespace varve::restore {

class BufferPool;

/// Uninitialised memory on loan from a pool; goes back when destroyed.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::unique_ptr<std::byte[]> bytes, std::size_t capacity, BufferPool* pool)
      : bytes_(std::move(bytes)), capacity_(capacity), pool_(pool) {}
  Buffer(Buffer&& other) noexcept = default;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { give_back(); }

  [[nodiscard]] std::byte* data() const { return bytes_.get(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::span<std::byte> first(std::size_t n) const { return {bytes_.get(), n}; }

 private:
  void give_back();

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  BufferPool* pool_ = nullptr;
};

/// Lends large buffers and keeps a few returned ones: fresh memory costs a page fault for
/// every 4 KiB, which is as dear as the copy into it. Thread-safe. Outlives its buffers.
class BufferPool {
 public:
  BufferPool(std::size_t spares_max, MemoryMeter* meter) : spares_max_(spares_max), meter_(meter) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  [[nodiscard]] Buffer acquire(std::size_t capacity);

 private:
  friend class Buffer;
  struct Spare {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
  };
  void give_back(std::unique_ptr<std::byte[]> bytes, std::size_t capacity);

  const std::size_t spares_max_;
  MemoryMeter* const meter_;
  std::mutex mutex_;  // Innermost: nothing else is locked under it.
  std::vector<Spare> spares_;
};

}  // namespace varve::restore
