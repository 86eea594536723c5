// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "format/container.h"
#include "restore/assembly_area.h"
#include "restore/stream_window.h"

namespace varve::restore {

/// The forward assembly area: the next areas of the output in order, with a slot for each of their
/// chunks. The engine enters areas at the back and delivers them at the front. A chunk from a read
/// fills all of the chunk's slots at once.
///
/// An area without bytes is planned: the area has slots, so that its reads can begin, but takes no
/// memory yet. Chunks for a planned area stay in the cache until provide() gives the area bytes.
/// Planned areas are behind all assembled areas.
///
/// Several threads may call place(), mark_bad() and in_place() if each thread handles its own
/// frames. A slot belongs to the container named in the slot, so a copy of the chunk in another
/// container does not touch the slot. (Arranging leaves duplicate copies.) A single thread makes
/// all remaining calls.
class ForwardArea {
 public:
  enum class SlotState : std::uint8_t {
    kEmpty,
    kFromDisk,
    kFromCache,
    kBad,
  };
  struct Slot {
    std::uint32_t offset = 0;  ///< Offset in the area.
    std::uint32_t bytes = 0;
    ContainerNumber container{};
    std::uint32_t index = 0;  ///< Index in the container's chunk table.
    std::uint32_t frame = 0;
    std::uint32_t area = 0;  ///< Number of the area since the start.
    SlotState state = SlotState::kEmpty;
  };
  struct Area {
    std::shared_ptr<AssemblyArea> bytes;  ///< nullptr for a planned area.
    StreamWindow::Cursor begin;
    StreamWindow::Cursor end;
    std::uint32_t size = 0;  ///< Size in bytes.
  };
  struct Placed {
    std::uint64_t next_use = LookAheadWindow::kNever;  ///< First use after assembled_end().
    /// Whether the chunk has slots before assembled_end().
    bool is_used = false;
  };

  explicit ForwardArea(const LookAheadWindow* window) : window_(window) {}

  [[nodiscard]] const std::deque<Area>& areas() const { return areas_; }
  [[nodiscard]] bool empty() const { return areas_.empty(); }
  /// Returns the number of the first area since the start.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// Return positions in the window. Valid only if !empty().
  [[nodiscard]] std::uint64_t begin() const { return areas_.front().begin.at; }
  [[nodiscard]] std::uint64_t end() const { return areas_.back().end.at; }
  /// Returns the end of the areas with bytes.
  [[nodiscard]] std::uint64_t assembled_end() const { return assembled_end_; }
  [[nodiscard]] Slot& slot(std::uint64_t at) { return slots_[at - begin()]; }
  [[nodiscard]] const Slot& slot(std::uint64_t at) const { return slots_[at - begin()]; }
  [[nodiscard]] std::span<std::byte> bytes(const Slot& slot) const {
    return {area(slot).bytes->at(slot.offset), slot.bytes};
  }

  /// Adds an area with its slots at the back. Sets the `area` of each slot.
  void push(Area area, std::vector<Slot>& slots);
  /// Gives `bytes` to the first planned area.
  void provide(std::shared_ptr<AssemblyArea> bytes);
  [[nodiscard]] Area pop_front();
  /// Removes the last area with its slots.
  void pop_back();

  /// Fills the empty slots of a chunk from position `at` on, where `at` is a use of the chunk.
  /// `container` selects the slots to be read from that container; nullopt selects all. Marks a
  /// slot bad if the slot's length differs from the length of `raw`. Does not copy to the slot
  /// whose memory begins at `lent`: lend() has provided the bytes of the slot already.
  Placed place(std::uint64_t at, std::optional<ContainerNumber> container,
               std::span<const std::byte> raw, SlotState state, const std::byte* lent = nullptr);
  /// Returns whether the chunk has empty slots before assembled_end() that are to be read from the
  /// container.
  [[nodiscard]] bool has_empty(std::uint64_t at, ContainerNumber container) const;
  /// Marks the chunk's empty slots that are to be read from the container as bad.
  void mark_bad(std::uint64_t at, ContainerNumber container);

  /// Returns the part of an area into which the whole frame can be decoded, because the chunks of
  /// the frame are consecutive in the area and in the same order. Empty if no area has a suitable
  /// part.
  [[nodiscard]] std::span<std::byte> in_place(const format::ContainerHeader& header,
                                              std::uint32_t frame) const;
  /// Lends the raw bytes of a frame to the area with the part returned by in_place(). Calls of
  /// several threads must not overlap.
  void lend(const format::ContainerHeader& header, std::uint32_t frame,
            std::span<const std::byte> raw, std::shared_ptr<const void> holder) const;

 private:
  [[nodiscard]] const Area& area(const Slot& slot) const { return areas_[slot.area - number_]; }

  const LookAheadWindow* const window_;
  std::deque<Area> areas_;
  std::deque<Slot> slots_;
  std::uint32_t number_ = 0;  // Number of the first area.
  std::uint64_t assembled_end_ = 0;
};

}  // namespace varve::restore
