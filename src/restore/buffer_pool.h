// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "restore/memory_meter.h"

namespace varve::restore {

class BufferPool;

/// Uninitialised memory from a pool, aligned for direct access. The destructor returns the memory
/// to the pool.
class Buffer {
 public:
  Buffer() = default;
  Buffer(base::AlignedBuffer own, BufferPool* pool)
      : own_(std::move(own)), memory_(own_->span()), pool_(pool) {}
  /// Wraps a slot of the pool.
  Buffer(std::span<std::byte> slot, BufferPool* pool) : memory_(slot), pool_(pool) {}
  Buffer(Buffer&& other) noexcept
      : own_(std::exchange(other.own_, {})),
        memory_(std::exchange(other.memory_, {})),
        pool_(other.pool_) {}
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { give_back(); }

  [[nodiscard]] std::byte* data() const { return memory_.data(); }
  [[nodiscard]] std::size_t capacity() const { return memory_.size(); }
  [[nodiscard]] std::span<std::byte> first(std::size_t n) const { return {data(), n}; }

 private:
  void give_back();

  std::optional<base::AlignedBuffer> own_;
  std::span<std::byte> memory_;
  BufferPool* pool_ = nullptr;
};

/// Lends large buffers and keeps a few returned buffers for reuse. Fresh memory costs a page fault
/// for every 4 KiB, as much as copying into the memory. Thread-safe.
/// Lifetime: the pool must outlive its buffers.
class BufferPool {
 public:
  /// `slot_bytes`: 0, or a multiple of layout::kRoomAlignment. Buffers of at most `slot_bytes` then
  /// come from the slots of one huge page while any slot is free. The kernel handles direct access
  /// to a huge page as one piece, and to normal memory as one piece for every 4 KiB. The pool
  /// allocates the huge page on demand.
  BufferPool(std::size_t spares_max, MemoryMeter* meter, std::size_t slot_bytes = 0)
      : spares_max_(spares_max), meter_(meter), slot_bytes_(slot_bytes) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  static constexpr std::size_t kSlotsBytes = 2U << 20;  ///< Size of all slots together.

  [[nodiscard]] Buffer acquire(std::size_t capacity);

 private:
  friend class Buffer;
  void give_back(base::AlignedBuffer bytes);
  void give_back(std::span<std::byte> slot);

  const std::size_t spares_max_;
  MemoryMeter* const meter_;
  const std::size_t slot_bytes_;
  std::mutex mutex_;  // Innermost: no further lock is taken under it.
  std::vector<base::AlignedBuffer> spares_;
  std::optional<base::AlignedBuffer> slots_;
  std::vector<std::span<std::byte>> free_slots_;
};

}  // namespace varve::restore
