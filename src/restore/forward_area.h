// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "format/container.h"
#include "restore/assembly_area.h"
#include "restore/stream_window.h"

namespace varve::restore {

/// The forward assembly area: one or more areas of the output under assembly, in order, with
/// a slot for each of their chunks. A chunk that was read goes to all of its slots at once.
/// place(), mark_bad() and in_place() may be called by several threads for frames of their own: a
/// slot belongs to the container that it names, and copies of its chunk elsewhere, which arranging
/// leaves, do not touch it. All else by one.
class ForwardArea {
 public:
  enum class SlotState : std::uint8_t {
    kEmpty,
    kFromDisk,
    kFromCache,
    kBad,
  };
  struct Slot {
    std::uint32_t offset = 0;  ///< In its area.
    std::uint32_t bytes = 0;
    std::uint32_t container = 0;
    std::uint32_t index = 0;  ///< In the container's chunk table.
    std::uint32_t frame = 0;
    std::uint32_t area = 0;  ///< Number of its area since the start.
    SlotState state = SlotState::kEmpty;
  };
  struct Area {
    std::shared_ptr<AssemblyArea> bytes;
    StreamWindow::Cursor begin;
    StreamWindow::Cursor end;
  };
  struct Placed {
    std::uint64_t next_use = LookAheadWindow::kNever;  ///< Behind the areas.
    bool is_used = false;                              ///< It has slots.
  };

  explicit ForwardArea(const LookAheadWindow* window) : window_(window) {}

  [[nodiscard]] const std::deque<Area>& areas() const { return areas_; }
  [[nodiscard]] bool empty() const { return areas_.empty(); }
  /// Positions in the window; only valid if !empty().
  [[nodiscard]] std::uint64_t begin() const { return areas_.front().begin.at; }
  [[nodiscard]] std::uint64_t end() const { return areas_.back().end.at; }
  [[nodiscard]] Slot& slot(std::uint64_t at) { return slots_[at - begin()]; }
  [[nodiscard]] const Slot& slot(std::uint64_t at) const { return slots_[at - begin()]; }
  [[nodiscard]] std::span<std::byte> bytes(const Slot& slot) const {
    return {area(slot).bytes->at(slot.offset), slot.bytes};
  }

  /// Adds an area with its slots, whose `area` is filled in.
  void push(Area area, std::vector<Slot>& slots);
  [[nodiscard]] Area pop_front();
  /// Takes the last area back; its slots are lost.
  void pop_back();

  /// Fills the empty slots of a chunk, the first of which is `at` or later, that are to be read
  /// from `container`; nullopt: all, before anything is read. Bytes of another length than its
  /// slots' make them bad.
  Placed place(std::uint64_t at, std::optional<std::uint32_t> container,
               std::span<const std::byte> raw, SlotState state);
  /// Whether the chunk has empty slots that are to be read from the container.
  [[nodiscard]] bool has_empty(std::uint64_t at, std::uint32_t container) const;
  /// Makes the chunk's empty slots bad that are to be read from the container.
  void mark_bad(std::uint64_t at, std::uint32_t container);

  /// Where a frame can be decoded to as it stands, because its chunks are to stand there one
  /// after the other; empty if it cannot.
  [[nodiscard]] std::span<std::byte> in_place(const format::ContainerHeader& header,
                                              std::uint32_t frame) const;

 private:
  [[nodiscard]] const Area& area(const Slot& slot) const { return areas_[slot.area - number_]; }

  const LookAheadWindow* const window_;
  std::deque<Area> areas_;
  std::deque<Slot> slots_;
  std::uint32_t number_ = 0;  // Of the first area.
};

}  // namespace varve::restore
