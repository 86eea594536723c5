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

/// Slices of the next area, which workers read while the area before it is put together and handed
/// over: else the disk would have nothing to do then. What comes here is not verified; who takes it
/// does that, and reads again what is wrong.
///
/// Everything but take() is for one thread.
class AheadReads {
 public:
  struct Planned {
    std::shared_ptr<const format::ContainerHeader> header;
    Slice slice;
  };

  /// Bytes of a slice, as long as it lives.
  class Lease;

  /// `slots` slices of at most `slice_bytes` are held at a time; none without workers. What it gets
  /// outlives it.
  AheadReads(SliceReader* reader, layout::ChunkSource* source, BufferPool* buffers,
             base::ThreadPool* workers, std::size_t slots, std::size_t slice_bytes);
  AheadReads(const AheadReads&) = delete;
  AheadReads& operator=(const AheadReads&) = delete;
  /// Waits for reads under way, which are few and short.
  ~AheadReads();

  [[nodiscard]] bool is_usable() const { return state_ != nullptr; }
  /// What the area after the one that is assembled now needs, in the order in which it will be
  /// taken. Reads begin as soon as there is a free slot and a free worker.
  void plan(std::vector<Planned> next);
  /// The area before that is assembled: what was read for it and not taken is of no use.
  void finish_area();

  /// The slice if it was read, after waiting for a read under way; empty if not. Thread-safe.
  [[nodiscard]] Lease take(const format::ContainerHeader& header, Slice slice);

  [[nodiscard]] std::size_t bytes() const;

 private:
  enum class SlotState : std::uint8_t { kFree, kQueued, kReading, kRead };
  struct Slot {
    std::span<std::byte> room;
    Planned planned;
    std::uint64_t area = 0;
    SlotState state = SlotState::kFree;
    bool is_wanted = false;
    bool is_lent = false;
    std::span<const std::byte> bytes;  // Of the slice; empty if it could not be read.
  };
  // Outlives this, since a worker may come late.
  struct State;
  static void start(const std::shared_ptr<State>& state, std::unique_lock<std::mutex>& lock);
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
