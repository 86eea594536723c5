// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "restore/buffer_pool.h"

namespace varve::restore {

/// A contiguous part of the output stream, assembled from chunks in the order in which they are
/// read. One thread creates it and calls finish(). After that it is immutable, and threads may
/// share it.
class AssemblyArea {
 public:
  AssemblyArea(Buffer buffer, std::uint64_t position, std::size_t size)
      : buffer_(std::move(buffer)), position_(position), size_(size) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t end() const { return position_ + size_; }
  [[nodiscard]] std::size_t capacity() const { return buffer_.capacity(); }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return buffer_.data() + offset; }

  /// Marks bytes that could not be read. good_bytes() excludes them.
  void mark_bad(std::size_t offset, std::size_t bytes);
  /// Sorts the ranges that mark_bad() collected. The engine calls it once, when the area is filled.
  void finish();

  /// Returns the number of good bytes from stream position `position` up to a bad byte or the end
  /// of the area.
  [[nodiscard]] std::size_t good_bytes(std::uint64_t position) const;
  [[nodiscard]] const std::byte* bytes_at(std::uint64_t position) const {
    return buffer_.data() + (position - position_);
  }

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  Buffer buffer_;
  const std::uint64_t position_;
  const std::size_t size_;
  std::vector<Range> bad_;
};

}  // namespace varve::restore
