// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "restore/buffer_pool.h"

namespace varve::restore {

/// A contiguous part of the output stream, assembled from chunks in read order. Some of the bytes
/// may be lent to the area from memory elsewhere. One thread creates the area and calls finish().
/// After finish(), the area is immutable, and threads may share it.
class AssemblyArea {
 public:
  AssemblyArea(Buffer buffer, std::uint64_t position, std::size_t size)
      : buffer_(std::move(buffer)), position_(position), size_(size) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t end() const { return position_ + size_; }
  [[nodiscard]] std::size_t capacity() const { return buffer_.capacity(); }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return buffer_.data() + offset; }

  /// Marks unreadable bytes. good_bytes() excludes them.
  void mark_bad(std::size_t offset, std::size_t bytes);
  /// Replaces a range of the area's own memory by `bytes`. Ranges must not overlap.
  /// Lifetime: `holder` keeps the bytes valid.
  void lend(std::size_t offset, std::span<const std::byte> bytes,
            std::shared_ptr<const void> holder);
  /// Sorts the ranges collected by mark_bad() and lend(). The engine calls finish() once, when the
  /// area is filled.
  void finish();

  /// Returns the bytes of a chunk.
  [[nodiscard]] std::span<const std::byte> view(std::size_t offset, std::size_t bytes) const;
  /// Returns the number of good bytes that are consecutive in memory, from stream position
  /// `position` on.
  [[nodiscard]] std::size_t good_bytes(std::uint64_t position) const;
  [[nodiscard]] const std::byte* bytes_at(std::uint64_t position) const {
    return view(static_cast<std::size_t>(position - position_), 0).data();
  }

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Lent {
    Range range;
    const std::byte* bytes = nullptr;
    std::shared_ptr<const void> holder;
  };
  [[nodiscard]] std::size_t end_in_memory(std::size_t offset) const;

  Buffer buffer_;
  const std::uint64_t position_;
  const std::size_t size_;
  std::vector<Range> bad_;
  std::vector<Lent> lent_;
};

}  // namespace varve::restore
