// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/assert.h"

namespace varve::base {

/// Memory aligned to 4096 bytes, as direct I/O needs it. Not zeroed.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 4096;
  explicit AlignedBuffer(std::size_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(
            std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) & ~(kAlignment - 1)))) {
    VARVE_ASSERT(data_ != nullptr);
  }
  [[nodiscard]] std::byte* data() { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace varve::base
