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
/// read. Some of its bytes may be in other memory, which is lent to it. One thread creates it and
/// calls finish(). After that it is immutable, and threads may share it.
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
  /// Takes bytes for the place of as many of the area's own ones. Ranges must not overlap.
  /// Lifetime: `holder` keeps the bytes valid.
  void lend(std::size_t offset, std::span<const std::byte> bytes,
            std::shared_ptr<const void> holder);
  /// Sorts the ranges that mark_bad() and lend() collected. The engine calls it once, when the area
  /// is filled.
  void finish();

  /// Returns the bytes of a chunk.
  [[nodiscard]] std::span<const std::byte> view(std::size_t offset, std::size_t bytes) const;
  /// Returns the number of good bytes that follow each other in memory, from stream position
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
