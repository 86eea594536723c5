// SPDX-License-Identifier: Apache-2.0
// Memory for the bytes received by a CellReader.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

namespace varve::remote {

/// Allocates memory for requests, and reuses freed memory first: the kernel clears each new page,
/// which takes about as long as receiving the page. The heap of each thread would keep its highest
/// use for ever. Thread-safe; outlives all allocated memory.
class FlightMemory : public std::enable_shared_from_this<FlightMemory> {
 public:
  /// Requests are rounded up to multiples of kStep.
  static constexpr std::size_t kStep = std::size_t{256} << 10;
  /// Requests of at least kHugePageBytes share one area, whatever the requests' lengths. The area
  /// asks for huge pages: small pages take longer to clear, and longer to copy from once evicted
  /// from the processors' caches. Each shorter request gets its own mapping.
  static constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

  /// `area_bytes`: length of the area. A request that does not fit into the area gets its own
  /// mapping.
  explicit FlightMemory(std::size_t area_bytes)
      : area_bytes_(area_bytes / kHugePageBytes * kHugePageBytes) {}

  struct GiveBack {
    std::shared_ptr<FlightMemory> pool{};
    std::size_t bytes = 0;
    void operator()(std::byte* memory) const { pool->give_back(memory, bytes); }
  };
  using Piece = std::unique_ptr<std::byte[], GiveBack>;

  FlightMemory(const FlightMemory&) = delete;
  FlightMemory& operator=(const FlightMemory&) = delete;
  ~FlightMemory() {
    if (area_ != nullptr) ::munmap(area_, area_bytes_);
  }

  /// Returns at least `bytes` bytes with any content; null without memory.
  [[nodiscard]] Piece take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto length = (bytes + kStep - 1) / kStep * kStep;
    if (bytes >= kHugePageBytes) {
      if (auto* const found = take_of_area(length))
        return {found, GiveBack{shared_from_this(), length}};
    }
    auto* const mapped = map(length);
    if (mapped == nullptr) return {};
    return {mapped, GiveBack{shared_from_this(), length}};
  }
  /// Returns unused memory to the system.
  void release() {
    const std::lock_guard lock(mutex_);
    for (const auto& [offset, length] : free_) {
      const auto end = std::min(offset + length, touched_bytes_);
      if (offset < end) ::madvise(area_ + offset, end - offset, MADV_DONTNEED);
    }
    touched_bytes_ = used_end();
  }
  /// Returns the length of the front of the area that requests have used since release().
  [[nodiscard]] std::size_t touched_bytes() {
    const std::lock_guard lock(mutex_);
    return touched_bytes_;
  }

 private:
  static std::byte* map(std::size_t length) {
    void* const mapped =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
  }
  // Maps enough for an aligned area, and unmaps the rest. Returns whether the area exists.
  bool map_area() {
    if (area_ != nullptr) return true;
    if (area_bytes_ == 0) return false;
    auto* begin = map(area_bytes_ + kHugePageBytes);
    if (begin == nullptr) return false;
    const auto over = reinterpret_cast<std::uintptr_t>(begin) % kHugePageBytes;
    const auto before = over == 0 ? 0 : kHugePageBytes - over;
    if (before != 0) ::munmap(begin, before);
    begin += before;
    if (before != kHugePageBytes) ::munmap(begin + area_bytes_, kHugePageBytes - before);
    ::madvise(begin, area_bytes_, MADV_HUGEPAGE);  // Only a hint.
    area_ = begin;
    free_[0] = area_bytes_;
    return true;
  }
  // Takes the first free range that is long enough, so requests use few and recently used pages.
  // Returns null without a free range. The caller of take_of_area(), map_area() and used_end()
  // holds the mutex.
  std::byte* take_of_area(std::size_t length) {
    if (!map_area()) return nullptr;
    const auto found =
        std::ranges::find_if(free_, [length](const auto& range) { return range.second >= length; });
    if (found == free_.end()) return nullptr;
    const auto [offset, bytes] = *found;
    free_.erase(found);
    if (bytes > length) free_[offset + length] = bytes - length;
    touched_bytes_ = std::max(touched_bytes_, offset + length);
    return area_ + offset;
  }
  [[nodiscard]] std::size_t used_end() const {
    if (free_.empty()) return area_ == nullptr ? 0 : area_bytes_;
    const auto& [offset, length] = *free_.rbegin();
    return offset + length == area_bytes_ ? offset : area_bytes_;
  }
  void give_back(std::byte* memory, std::size_t length) {
    const std::lock_guard lock(mutex_);
    if (area_ == nullptr || memory < area_ || memory >= area_ + area_bytes_) {
      ::munmap(memory, length);
      return;
    }
    auto offset = static_cast<std::size_t>(memory - area_);
    const auto after = free_.find(offset + length);
    if (after != free_.end()) {
      length += after->second;
      free_.erase(after);
    }
    const auto next = free_.lower_bound(offset);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        length += before->second;
      }
    }
    free_[offset] = length;
  }

  const std::size_t area_bytes_;
  std::mutex mutex_;  // Innermost. Guards the members below.
  std::byte* area_ = nullptr;
  std::map<std::size_t, std::size_t> free_;  // Free ranges of the area: offset → length.
  std::size_t touched_bytes_ = 0;
};

}  // namespace varve::remote
