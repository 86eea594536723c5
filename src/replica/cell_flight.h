// SPDX-License-Identifier: Apache-2.0
// The requests of a reader of cells, and the reads that wait for them.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replica/block_cache.h"
#include "replica/cell_reader.h"
#include "varve/result.h"

namespace varve::replica {

/// Returns the length of a block.
inline std::size_t block_bytes(std::uint64_t object_bytes, std::uint64_t block) {
  return static_cast<std::size_t>(
      std::min(kCacheBlockBytes, object_bytes - block * kCacheBlockBytes));
}

/// Returns mapped memory to the system.
struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* mapped) const { ::munmap(mapped, bytes); }
};

/// The ranges of one call of read().
struct CellReader::Batch {
  struct Read {
    RangeToRead what{};
    std::size_t left = 1;  // Flights that it waits for, and 1 until all of them are known.
    std::optional<Error> error{};
  };
  Done done;
  std::mutex mutex;  // Innermost. Guards `left` and `error` of the reads.
  std::vector<Read> reads;

  // Ends one wait of a read.
  void end(std::size_t at, const std::optional<Error>& error) {
    std::optional<Error> found;
    {
      const std::lock_guard lock(mutex);
      auto& read = reads[at];
      if (error && !read.error) read.error = error;
      if (--read.left != 0) return;
      found = read.error;
    }
    done(at, found);
  }
};

/// Cells that follow each other, from their request until nothing holds them in memory any more.
/// The lock of the state guards all but the memory.
struct CellReader::Flight {
  enum class Step : std::uint8_t { kQueued, kFlying, kReceived, kFailed };
  struct Waiter {
    std::shared_ptr<Batch> batch;
    std::size_t read = 0;
  };

  std::string object{};
  std::uint64_t object_bytes = 0;
  std::uint64_t begin = 0;  // The first cell.
  std::uint64_t end = 0;    // The cell after the last one.
  bool is_ahead = false;
  Step step = Step::kQueued;
  std::vector<Waiter> waiters{};
  std::optional<Error> error{};
  std::chrono::steady_clock::time_point failed_at{};
  bool is_in_cache = false;  // Or will not be written to it.
  std::chrono::steady_clock::time_point received_at{};
  std::uint64_t taken = 0;  // Bytes that readers have copied.
  // Has room for the whole blocks of the cells; memory of cells that were not requested is never
  // touched. It is mapped, so that it goes back to the system at once: the heap of each thread
  // would keep as much as it ever had.
  std::unique_ptr<std::byte[], Unmap> memory{};

  [[nodiscard]] std::uint64_t offset() const { return begin * kCacheCellBytes; }
  [[nodiscard]] std::uint64_t bytes() const {
    return std::min(end * kCacheCellBytes, object_bytes) - offset();
  }
  [[nodiscard]] std::uint64_t first_block() const { return begin / kCellsPerBlock; }
  [[nodiscard]] std::uint64_t end_block() const {
    return (end + kCellsPerBlock - 1) / kCellsPerBlock;
  }
  /// Returns whether a reader is expected to copy most of the bytes soon.
  [[nodiscard]] bool is_unread(std::chrono::steady_clock::time_point now,
                               std::chrono::milliseconds kept) const {
    return is_ahead && taken < bytes() / 2 && now - received_at < kept;
  }
  /// Returns false without memory.
  [[nodiscard]] bool allocate() {
    const auto until = std::min(end_block() * kCacheBlockBytes, object_bytes);
    const auto length = static_cast<std::size_t>(until - first_block() * kCacheBlockBytes);
    void* const mapped =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return false;
    memory = std::unique_ptr<std::byte[], Unmap>(static_cast<std::byte*>(mapped), Unmap{length});
    return true;
  }
  [[nodiscard]] std::span<std::byte> block(std::uint64_t number) const {
    return {memory.get() + (number - first_block()) * kCacheBlockBytes,
            block_bytes(object_bytes, number)};
  }
  [[nodiscard]] std::span<std::byte> received() const {
    return {memory.get() + (offset() - first_block() * kCacheBlockBytes),
            static_cast<std::size_t>(bytes())};
  }
};

}  // namespace varve::replica
