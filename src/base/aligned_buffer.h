// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/assert.h"

namespace varve::base {

/// Uninitialised memory, aligned for direct I/O: to 4096 bytes, and from 2 MiB on to huge pages,
/// which the kernel pins faster. Memory from 2 MiB on has its own mapping. The C library would keep
/// freed blocks of such sizes in the heap, in pieces too small for later requests.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes >= kHugePageBytes) {
      data_ = map(round_up(bytes, kHugePageBytes));
    } else {
      data_ = Memory(
          static_cast<std::byte*>(std::aligned_alloc(kPageBytes, round_up(bytes, kPageBytes))),
          Free{0});
    }
    VARVE_ASSERT(data_ != nullptr);
  }
  [[nodiscard]] std::byte* data() { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), bytes_}; }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kHugePageBytes = 2U << 20;
  struct Free {
    std::size_t mapped;  // Length of the mapping; 0 for memory from the heap.
    void operator()(std::byte* p) const {
      if (mapped == 0) {
        std::free(p);
      } else {
        ::munmap(p, mapped);
      }
    }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  static std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }
  // Returns aligned memory. A mapping begins at any page, so map() maps enough to contain an
  // aligned part, and unmaps the rest.
  static Memory map(std::size_t bytes) {
    const std::size_t taken = bytes + kHugePageBytes;
    void* mapping =
        ::mmap(nullptr, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return Memory(nullptr, Free{0});
    auto* begin = static_cast<std::byte*>(mapping);
    const std::size_t address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t before = round_up(address, kHugePageBytes) - address;
    if (before != 0) ::munmap(begin, before);
    if (before != kHugePageBytes) ::munmap(begin + before + bytes, kHugePageBytes - before);
    ::madvise(begin + before, bytes, MADV_HUGEPAGE);  // Only a hint.
    return Memory(begin + before, Free{bytes});
  }

  std::size_t bytes_;
  Memory data_{nullptr, Free{0}};
};

}  // namespace varve::base
