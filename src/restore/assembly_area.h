// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "restore/buffer_pool.h"

namespace varve::restore {

/// A stretch of the output stream, put together from chunks in whatever order they were
/// read. One thread fills it; after that it is immutable and may be shared.
class AssemblyArea {
 public:
  AssemblyArea(Buffer buffer, std::uint64_t position, std::size_t size)
      : buffer_(std::move(buffer)), position_(position), size_(size) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t end() const { return position_ + size_; }
  [[nodiscard]] std::size_t capacity() const { return buffer_.capacity(); }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return buffer_.data() + offset; }

  /// The bytes at `offset` could not be read; nobody gets them from here.
  void mark_bad(std::size_t offset, std::size_t bytes);
  /// Sorts what mark_bad() collected. Called once, when the area is filled.
  void finish();

  /// Number of bytes from stream position `position` on that are here and good.
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
