// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.h"
#include "format/container.h"
#include "restore/buffer_pool.h"

namespace varve::restore {

/// The raw bytes of one frame. Immutable once filled.
class Frame {
 public:
  /// Allocates `size` bytes. The pool must outlive the frame.
  Frame(std::size_t size, BufferPool* pool)
      // Only two sizes are used, so that spare buffers fit.
      : buffer_(pool->acquire(size <= kSmallBytes ? kSmallBytes
                                                  : std::max(size, format::kFrameRawBytesMax))),
        size_(size) {}
  [[nodiscard]] std::span<std::byte> bytes() { return buffer_.first(size_); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return buffer_.first(size_); }

 private:
  static constexpr std::size_t kSmallBytes = 48U << 10;
  Buffer buffer_;
  std::size_t size_;
};

/// Permanent name of a frame. The checksum distinguishes frames with the same place at different
/// times.
struct FrameKey {
  std::uint64_t version_key = 0;
  ContainerNumber container{};
  std::uint32_t frame = 0;
  std::uint64_t checksum = 0;
  bool operator==(const FrameKey&) const = default;
};

/// Keeps the frames decoded most recently by random reads. Thread-safe.
class FrameCache {
 public:
  static constexpr std::size_t kFramesMax = 16;

  /// Returns the frame, or nullptr if the frame is not cached.
  [[nodiscard]] std::shared_ptr<const Frame> find(const FrameKey& key);
  void insert(const FrameKey& key, std::shared_ptr<const Frame> frame);

 private:
  struct Entry {
    FrameKey key;
    std::shared_ptr<const Frame> frame;
    std::uint64_t used = 0;
  };
  std::mutex mutex_;  // Innermost; never held during I/O.
  std::vector<Entry> entries_;
  std::uint64_t ticks_ = 0;
};

}  // namespace varve::restore
