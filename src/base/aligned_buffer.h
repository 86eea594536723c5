// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/assert.h"

namespace varve::base {

/// Memory aligned for direct I/O: to 4096 bytes, and from 2 MiB on to huge pages, which the
/// kernel pins faster. Not zeroed.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
    const std::size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
    const std::size_t rounded = (bytes + alignment - 1) & ~(alignment - 1);
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
    VARVE_ASSERT(data_ != nullptr);
    if (alignment == kHugePageBytes) madvise(data_.get(), rounded, MADV_HUGEPAGE);  // A wish.
  }
  [[nodiscard]] std::byte* data() { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), bytes_}; }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kHugePageBytes = 2U << 20;
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace varve::base
