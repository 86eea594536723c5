// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "format/container.h"
#include "layout/layout.h"
#include "restore/buffer_pool.h"
#include "restore/slice_reader.h"

namespace varve::restore {

/// Reads the slices of the next areas in advance, while the engine assembles the present area and
/// the reader consumes it. Otherwise the disk would be idle during that time. The bytes are not
/// verified: the caller of take() verifies them and reads a bad slice again. If the source answers
/// later, submits as many reads at once as there are slots, without workers. Areas have ascending
/// numbers.
///
/// take() is thread-safe; one thread makes all other calls.
class AheadReads {
 public:
  struct Planned {
    std::shared_ptr<const format::ContainerHeader> header;
    Slice slice;
    std::uint32_t area = 0;  ///< First area that needs the slice.
  };

  /// The bytes of a slice.
  /// Lifetime: the bytes are valid as long as the lease exists.
  class Lease;

  /// Holds up to `slots` slices of at most `slice_bytes` each. Reads nothing if `workers` is
  /// nullptr and the source does not answer later.
  /// Lifetime: all arguments must outlive this object.
  AheadReads(SliceReader* reader, layout::ChunkSource* source, BufferPool* buffers,
             base::ThreadPool* workers, std::size_t slots, std::size_t slice_bytes);
  AheadReads(const AheadReads&) = delete;
  AheadReads& operator=(const AheadReads&) = delete;
  /// Waits until the present reads end. These are few and short.
  ~AheadReads();

  [[nodiscard]] bool is_usable() const { return state_ != nullptr; }
  /// Adds slices that areas from `present` on need, in the order of the take() calls. A read begins
  /// as soon as a slot and a worker are free; the slices of the present area come first.
  void plan(std::uint32_t present, std::vector<Planned> next);
  /// Forgets the slices of areas from `area` on, except those that are being read or were read.
  void forget_from(std::uint32_t area);
  /// Releases the slices that were read for `area` and were not taken. The engine calls it when
  /// that area is assembled.
  void finish_area(std::uint32_t area);

  /// Returns the slice if it was read, or an empty lease. Waits if a worker is reading the slice
  /// now. Thread-safe.
  [[nodiscard]] Lease take(const format::ContainerHeader& header, Slice slice);

  [[nodiscard]] std::size_t bytes() const;

 private:
  enum class SlotState : std::uint8_t { kFree, kQueued, kReading, kRead };
  struct Slot {
    std::span<std::byte> room;
    Planned planned;
    SlotState state = SlotState::kFree;
    bool is_wanted = false;
    bool is_lent = false;
    std::span<const std::byte> bytes;  // The slice as read; empty if the read failed.
  };
  // Shared with the workers, because a queued task may start after this object is destroyed.
  struct State;
  static bool assign(State& state, Slot& slot, SlotState to);
  static void start(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>& lock);
  static void submit(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>& lock);
  static void finish(const std::shared_ptr<State>& state, Slot& slot,
                     Result<std::span<const std::byte>> got, std::unique_lock<std::mutex>& lock);
  static void read(const std::shared_ptr<State>& state, std::size_t slot);
  static void release_if_done(Slot& slot);

  std::shared_ptr<State> state_;
};

class AheadReads::Lease {
 public:
  Lease() = default;
  Lease(std::shared_ptr<State> state, std::size_t slot, std::span<const std::byte> bytes)
      : state_(std::move(state)), slot_(slot), bytes_(bytes) {}
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<State> state_;
  std::size_t slot_ = 0;
  std::span<const std::byte> bytes_;
};

}  // namespace varve::restore
