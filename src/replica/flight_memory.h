// SPDX-License-Identifier: Apache-2.0
// Memory for the bytes that a reader of cells receives.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace varve::replica {

/// Maps memory for requests, and keeps what they give back for the next ones: the kernel clears
/// each page of new memory, which takes about as long as receiving it. The heap of each thread
/// would keep as much as it ever had. Thread-safe; outlives what it gave.
class FlightMemory : public std::enable_shared_from_this<FlightMemory> {
 public:
  /// Lengths are multiples of this, so that requests of about the same length can use the memory of
  /// each other.
  static constexpr std::size_t kStep = std::size_t{256} << 10;
  /// Memory of at least this length is aligned to it, and asks for huge pages. Small pages take
  /// longer to clear, and longer to copy from once they have left the caches.
  static constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

  /// Keeps memory as long as no more than so many bytes are mapped, in use or kept.
  explicit FlightMemory(std::size_t mapped_bytes_max) : mapped_bytes_max_(mapped_bytes_max) {}

  struct GiveBack {
    std::shared_ptr<FlightMemory> pool{};
    std::size_t bytes = 0;
    void operator()(std::byte* memory) const { pool->give_back(memory, bytes); }
  };
  using Piece = std::unique_ptr<std::byte[], GiveBack>;

  FlightMemory(const FlightMemory&) = delete;
  FlightMemory& operator=(const FlightMemory&) = delete;
  ~FlightMemory() { release(); }

  /// Returns at least so many bytes, with any content; null without memory.
  [[nodiscard]] Piece take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.lower_bound(bytes);
    if (found != kept_.end() && found->first <= std::max(2 * bytes, kStep)) {
      const auto [length, memory] = *found;
      kept_.erase(found);
      kept_bytes_ -= length;
      return {memory, GiveBack{shared_from_this(), length}};
    }
    const auto length = (bytes + kStep - 1) / kStep * kStep;
    while (!kept_.empty() && mapped_bytes_ + length > mapped_bytes_max_) unmap_first();
    auto* const mapped = map(length);
    if (mapped == nullptr) return {};
    mapped_bytes_ += length;
    return {mapped, GiveBack{shared_from_this(), length}};
  }
  /// Returns the kept memory to the system.
  void release() {
    const std::lock_guard lock(mutex_);
    while (!kept_.empty()) unmap_first();
  }
  /// Returns the bytes that are kept for later requests.
  [[nodiscard]] std::size_t kept_bytes() {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
  }
  /// Returns the bytes that are mapped, in use or kept.
  [[nodiscard]] std::size_t mapped_bytes() {
    const std::lock_guard lock(mutex_);
    return mapped_bytes_;
  }

 private:
  // Returns null without memory. Maps enough to contain an aligned part, and unmaps the rest.
  static std::byte* map(std::size_t length) {
    const auto apart = length < kHugePageBytes ? 0 : kHugePageBytes;
    void* const mapped =
        ::mmap(nullptr, length + apart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto* begin = static_cast<std::byte*>(mapped);
    if (apart == 0) return begin;
    const auto over = reinterpret_cast<std::uintptr_t>(begin) % kHugePageBytes;
    const auto before = over == 0 ? 0 : kHugePageBytes - over;
    if (before != 0) ::munmap(begin, before);
    begin += before;
    if (before != apart) ::munmap(begin + length, apart - before);
    ::madvise(begin, length, MADV_HUGEPAGE);  // Only a hint.
    return begin;
  }
  // The shortest piece goes first: the fewest requests fit it. The caller holds the mutex.
  void unmap_first() {
    const auto [length, memory] = *kept_.begin();
    kept_.erase(kept_.begin());
    kept_bytes_ -= length;
    mapped_bytes_ -= length;
    ::munmap(memory, length);
  }
  void give_back(std::byte* memory, std::size_t length) {
    const std::lock_guard lock(mutex_);
    // Before those of its length: what was used last is most likely in the processor's caches.
    kept_.emplace_hint(kept_.lower_bound(length), length, memory);
    kept_bytes_ += length;
    while (!kept_.empty() && mapped_bytes_ > mapped_bytes_max_) unmap_first();
  }

  const std::size_t mapped_bytes_max_;
  std::mutex mutex_;  // Innermost. Guards the members below.
  std::multimap<std::size_t, std::byte*> kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace varve::replica
