// SPDX-License-Identifier: Apache-2.0
// The requests of a CellReader, and the reads waiting for requests.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "remote/block_cache.h"
#include "remote/cell_reader.h"
#include "remote/flight_memory.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns the length of a block.
inline std::size_t block_bytes(std::uint64_t object_bytes, std::uint64_t block) {
  return static_cast<std::size_t>(
      std::min(kCacheBlockBytes, object_bytes - block * kCacheBlockBytes));
}

inline std::uint64_t first_cell(const ObjectRange& range) { return range.offset / kCacheCellBytes; }
inline std::uint64_t end_cell(const ObjectRange& range) {
  if (range.bytes == 0) return first_cell(range);
  return (range.offset + range.bytes + kCacheCellBytes - 1) / kCacheCellBytes;
}

inline CellSet cell_bit(std::uint64_t cell) {
  return static_cast<CellSet>(1U << (cell % kCellsPerBlock));
}

/// Copies the overlap of a range with `bytes`, which begin at `offset` of the range's object.
inline void copy_common(const RangeToRead& to, std::uint64_t offset,
                        std::span<const std::byte> bytes) {
  const auto begin = std::max(to.range.offset, offset);
  const auto end = std::min(to.range.offset + to.range.bytes, offset + bytes.size());
  if (begin >= end) return;
  std::memcpy(to.out.data() + (begin - to.range.offset), bytes.data() + (begin - offset),
              static_cast<std::size_t>(end - begin));
}

/// The ranges of one call of read().
struct CellReader::Batch {
  struct Read {
    RangeToRead what{};
    std::size_t left = 1;  // Flights that the read waits for, plus 1 until all are known.
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

/// A reader that takes one byte counts as needing a whole part of kTakenPartBytes. No container is
/// smaller than a part, and each container begins and ends at a part boundary.
inline constexpr std::uint64_t kTakenPartBytes = 4096;
inline constexpr std::uint64_t kTakenPartsPerCell = kCacheCellBytes / kTakenPartBytes;
static_assert(kTakenPartsPerCell <= 32);

/// Consecutive cells, from the request until nothing holds the cells in memory. The lock of State
/// guards all members but the memory.
struct CellReader::Flight {
  enum class Step : std::uint8_t { kQueued, kFlying, kReceived, kFailed };
  struct Waiter {
    std::shared_ptr<Batch> batch;
    std::size_t read = 0;
    [[nodiscard]] const RangeToRead& what() const { return batch->reads[read].what; }
  };

  std::string object{};
  std::uint64_t object_bytes = 0;
  std::uint64_t begin = 0;  // The first cell.
  std::uint64_t end = 0;    // The first cell after the last.
  bool is_ahead = false;
  Step step = Step::kQueued;
  std::vector<Waiter> waiters{};
  std::optional<Error> error{};
  std::chrono::steady_clock::time_point requested_at{};  // Zero if the store was not asked.
  std::chrono::steady_clock::time_point failed_at{};
  bool is_writing = false;   // Being written to the cache.
  bool is_in_cache = false;  // In the cache, or never to be written to the cache.
  bool is_dropped = false;   // Some received bytes are wrong.
  std::chrono::steady_clock::time_point received_at{};
  std::uint64_t taken = 0;  // Bytes copied by readers.
  // Per cell: the parts of kTakenPartBytes with bytes copied by readers.
  std::vector<std::uint32_t> taken_parts{};
  FlightMemory::Piece memory{};
  std::weak_ptr<const std::shared_ptr<Flight>> loan{};  // Exists while readers hold lent bytes.

  [[nodiscard]] std::uint64_t offset() const { return begin * kCacheCellBytes; }
  [[nodiscard]] std::uint64_t bytes() const {
    return std::min(end * kCacheCellBytes, object_bytes) - offset();
  }
  [[nodiscard]] bool is_lent() const { return !loan.expired(); }
  [[nodiscard]] bool has(const ObjectRange& range) const {
    return range.offset >= offset() && range.offset + range.bytes <= offset() + bytes();
  }
  /// Lends received bytes of `flight`.
  static store::LentBytes lend(const std::shared_ptr<Flight>& flight, const ObjectRange& range) {
    auto holder = flight->loan.lock();
    if (!holder) holder = std::make_shared<const std::shared_ptr<Flight>>(flight);
    flight->loan = holder;
    return {flight->received().subspan(static_cast<std::size_t>(range.offset - flight->offset()),
                                       static_cast<std::size_t>(range.bytes)),
            std::move(holder)};
  }
  /// Returns whether a reader is expected to copy most of the bytes soon.
  [[nodiscard]] bool is_unread(std::chrono::steady_clock::time_point now,
                               std::chrono::milliseconds kept) const {
    return is_ahead && taken < bytes() / 2 && now - received_at < kept;
  }
  /// Notes that a reader copies a range of the object. The flight may have only some of its bytes.
  void take(std::uint64_t from, std::uint64_t until) {
    from = std::max(from, offset());
    until = std::min(until, offset() + bytes());
    if (from >= until) return;
    taken += until - from;
    taken_parts.resize(static_cast<std::size_t>(end - begin));
    for (auto part = from / kTakenPartBytes; part <= (until - 1) / kTakenPartBytes; ++part) {
      taken_parts[static_cast<std::size_t>(part / kTakenPartsPerCell - begin)] |=
          1U << (part % kTakenPartsPerCell);
    }
  }
  /// Returns whether readers have copied bytes of all parts of a cell.
  [[nodiscard]] bool is_taken(std::uint64_t cell) const {
    if (taken_parts.empty()) return false;
    const auto length = std::min(kCacheCellBytes, object_bytes - cell * kCacheCellBytes);
    const auto parts = (length + kTakenPartBytes - 1) / kTakenPartBytes;
    const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << parts) - 1);
    return taken_parts[static_cast<std::size_t>(cell - begin)] == all;
  }
  [[nodiscard]] bool is_taken() const {
    for (auto cell = begin; cell < end; ++cell) {
      if (!is_taken(cell)) return false;
    }
    return true;
  }
  /// Allocates the memory. Returns false without memory.
  [[nodiscard]] bool allocate(FlightMemory& pool) {
    memory = pool.take(static_cast<std::size_t>(bytes()));
    return memory != nullptr;
  }
  [[nodiscard]] std::span<std::byte> received() const {
    return {memory.get(), static_cast<std::size_t>(bytes())};
  }
  /// Returns the received part of a block, from its first received cell on.
  [[nodiscard]] PartOfBlock part_of(std::uint64_t block) const {
    const auto first = std::max(begin, block * kCellsPerBlock);
    const auto until = std::min(end, (block + 1) * kCellsPerBlock);
    const auto at = first * kCacheCellBytes;
    const auto length = std::min(until * kCacheCellBytes, object_bytes) - at;
    return {block_bytes(object_bytes, block), static_cast<unsigned>(first % kCellsPerBlock),
            received().subspan(static_cast<std::size_t>(at - offset()),
                               static_cast<std::size_t>(length))};
  }
};

}  // namespace varve::remote
