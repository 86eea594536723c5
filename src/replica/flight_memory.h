// SPDX-License-Identifier: Apache-2.0
// Memory for the bytes that a reader of cells receives.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace varve::replica {

/// Maps memory for requests, and keeps some of what they give back for the next ones: the kernel
/// clears each page of new memory, which takes about as long as receiving it. The heap of each
/// thread would keep as much as it ever had. Thread-safe; outlives what it gave.
class FlightMemory : public std::enable_shared_from_this<FlightMemory> {
 public:
  static constexpr std::size_t kKeptBytesMax = std::size_t{32} << 20;

  struct GiveBack {
    std::shared_ptr<FlightMemory> pool{};
    std::size_t bytes = 0;
    void operator()(std::byte* memory) const { pool->give_back(memory, bytes); }
  };
  using Piece = std::unique_ptr<std::byte[], GiveBack>;

  FlightMemory() = default;
  FlightMemory(const FlightMemory&) = delete;
  FlightMemory& operator=(const FlightMemory&) = delete;
  ~FlightMemory() { release(); }

  /// Returns at least so many bytes, with any content; null without memory.
  [[nodiscard]] Piece take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = kept_.lower_bound(bytes);
      if (found != kept_.end() && found->first <= 2 * bytes) {
        const auto [length, memory] = *found;
        kept_.erase(found);
        kept_bytes_ -= length;
        return {memory, GiveBack{shared_from_this(), length}};
      }
    }
    void* const mapped =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return {};
    return {static_cast<std::byte*>(mapped), GiveBack{shared_from_this(), bytes}};
  }
  /// Returns the kept memory to the system.
  void release() {
    const std::lock_guard lock(mutex_);
    for (const auto& [length, memory] : kept_) ::munmap(memory, length);
    kept_.clear();
    kept_bytes_ = 0;
  }
  /// Returns the bytes that are kept for later requests.
  [[nodiscard]] std::size_t kept_bytes() {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
  }

 private:
  void give_back(std::byte* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + bytes > kKeptBytesMax) {
      ::munmap(memory, bytes);
      return;
    }
    kept_.emplace(bytes, memory);
    kept_bytes_ += bytes;
  }

  std::mutex mutex_;  // Innermost. Guards the members below.
  std::multimap<std::size_t, std::byte*> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace varve::replica
