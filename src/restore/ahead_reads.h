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
/// the reader consumes it. Otherwise the disk would be idle during that time. One request reads
/// several consecutive slices of a container, possibly of different areas. The bytes are not
/// verified: the caller of take() verifies them and reads a bad slice again. If the source answers
/// later, submits as many reads at once as there are slots, each for a single slice, without
/// workers. Areas have ascending numbers.
///
/// take() is thread-safe; all remaining calls come from a single thread.
class AheadReads {
 public:
  struct Planned {
    std::shared_ptr<const format::ContainerHeader> header;
    Slice slice;
    std::uint32_t area = 0;  ///< First area that needs the slice.
    /// Windows of a sealed container that the reader needs, also for later slices.
    SealedWindows::Set windows{};
  };

  /// The bytes of a slice.
  /// Lifetime: the bytes are valid as long as the lease exists.
  class Lease;

  /// Sizes of the memory.
  struct Sizes {
    std::size_t slots = 0;        ///< Maximum number of requests under way or held.
    std::size_t slice_bytes = 0;  ///< Memory of a slot on average, without alignment.
  };

  /// Reads in advance on `workers`. Reads nothing if `workers` is nullptr and the source does not
  /// answer later.
  /// Lifetime: all arguments must outlive this object.
  AheadReads(SliceReader* reader, layout::ChunkSource* source, BufferPool* buffers,
             base::ThreadPool* workers, const Sizes& sizes);
  AheadReads(const AheadReads&) = delete;
  AheadReads& operator=(const AheadReads&) = delete;
  /// Waits for the present reads: few, short reads.
  ~AheadReads();

  [[nodiscard]] bool is_usable() const { return state_ != nullptr; }
  /// Returns the maximum size of a request, given the memory.
  [[nodiscard]] std::size_t request_bytes_max() const;
  /// Sets the maximum of stored bytes for a request of several slices, from the next plan() on.
  /// With 0, which is the default, each slice is a request.
  void set_request_bytes(std::size_t bytes);
  /// Adds slices needed by areas from `present` on, in the order of the take() calls. A read begins
  /// as soon as a slot and a worker are free; the slices of the present area come first. Slices of
  /// the areas after `last` are only read together with earlier slices, because later plans may
  /// extend the requests for them.
  void plan(std::uint32_t present, std::vector<Planned> next, std::uint32_t last);
  /// Forgets the slices of areas from `area` on, except slices whose requests have begun.
  void forget_from(std::uint32_t area);
  /// Releases the slices that were read for `area` and not taken. The engine calls finish_area()
  /// after assembling the area.
  void finish_area(std::uint32_t area);

  /// Returns a planned slice, or an empty lease. Waits while a worker reads the request of the
  /// slice; reads the request in this thread if no worker has begun. Thread-safe.
  [[nodiscard]] Lease take(const format::ContainerHeader& header, Slice slice);

  [[nodiscard]] std::size_t bytes() const;

 private:
  enum class SlotState : std::uint8_t { kFree, kQueued, kReading, kRead };
  /// A request and its memory.
  struct Slot {
    std::shared_ptr<const format::ContainerHeader> header;
    Slice request;               // Frames from the first to the last slice.
    std::vector<Planned> parts;  // Slices not yet taken.
    std::span<std::byte> room;
    store::LentBytes lent;        // Holds the bytes if they are not in `room`.
    SealedWindows::Plan windows;  // The reader's needs in a sealed container.
    SlotState state = SlotState::kFree;
    std::size_t leases = 0;
    std::span<const std::byte> bytes;  // The request as read; empty if the read failed.
    store::UnreadParts unread;         // Parts of `bytes`.
  };
  // Shared with the workers, because a queued task may start after this object is destroyed.
  struct State;
  using Lock = std::unique_lock<std::mutex>;
  using PlannedSlices = std::deque<Planned>;
  static SealedWindows::Plan plan_of(const State& state, const format::ContainerHeader& header);
  static bool assign(State& state, Slot& slot, PlannedSlices::iterator first, SlotState to);
  static bool assign_next(State& state, Slot& slot, SlotState to);
  static std::span<std::byte> find_room(State& state, std::size_t bytes);
  static void start(const std::shared_ptr<State>& state, Lock& lock);
  static void submit(const std::shared_ptr<State>& state, Lock& lock);
  static void finish(const std::shared_ptr<State>& state, Slot& slot, Result<SliceBytes> got,
                     Lock& lock);
  static void read(const std::shared_ptr<State>& state, Slot& slot, Lock& lock);
  static void release_if_done(Slot& slot);
  [[nodiscard]] Slot* find_slot(const format::ContainerHeader& header, Slice slice) const;
  [[nodiscard]] Slot* assign_planned(const format::ContainerHeader& header, Slice slice) const;

  std::shared_ptr<State> state_;
};

class AheadReads::Lease {
 public:
  Lease() = default;
  Lease(std::shared_ptr<State> state, Slot* slot, SliceBytes slice)
      : state_(std::move(state)), slot_(slot), slice_(std::move(slice)) {}
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  [[nodiscard]] std::span<const std::byte> bytes() const { return slice_.bytes; }
  /// Returns the bytes with a holder that keeps them alive after the lease; the holder may be null.
  [[nodiscard]] const SliceBytes& slice() const { return slice_; }

 private:
  std::shared_ptr<State> state_;
  Slot* slot_ = nullptr;
  SliceBytes slice_;
};

}  // namespace varve::restore
