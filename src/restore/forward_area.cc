// SPDX-License-Identifier: Apache-2.0
#include "restore/forward_area.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace varve::restore {

void ForwardArea::push(Area area, std::vector<Slot>& slots) {
  const auto number = number_ + static_cast<std::uint32_t>(areas_.size());
  for (Slot& slot : slots) slot.area = number;
  slots_.insert(slots_.end(), slots.begin(), slots.end());
  if (area.bytes) {
    assembled_end_ = area.end.at;
  } else if (areas_.empty()) {
    assembled_end_ = area.begin.at;
  }
  areas_.push_back(std::move(area));
}

void ForwardArea::provide(std::shared_ptr<AssemblyArea> bytes) {
  const auto planned = std::ranges::find_if(areas_, [](const Area& area) { return !area.bytes; });
  VARVE_ASSERT(planned != areas_.end());
  planned->bytes = std::move(bytes);
  assembled_end_ = planned->end.at;
}

ForwardArea::Area ForwardArea::pop_front() {
  Area area = std::move(areas_.front());
  areas_.pop_front();
  const auto chunks = static_cast<std::ptrdiff_t>(area.end.at - area.begin.at);
  slots_.erase(slots_.begin(), slots_.begin() + chunks);
  ++number_;
  return area;
}

void ForwardArea::pop_back() {
  const Area& area = areas_.back();
  slots_.resize(slots_.size() - (area.end.at - area.begin.at));
  assembled_end_ = std::min(assembled_end_, area.begin.at);
  areas_.pop_back();
}

ForwardArea::Placed ForwardArea::place(std::uint64_t at, std::optional<ContainerNumber> container,
                                       std::span<const std::byte> raw, SlotState state,
                                       const std::byte* lent) {
  Placed placed;
  for (; at < assembled_end_; at = window_->next_use(at)) {
    placed.is_used = true;
    Slot& empty = slot(at);
    if (container && empty.container != *container) continue;
    if (empty.state != SlotState::kEmpty) continue;
    const auto target = bytes(empty);
    empty.state = target.size() == raw.size() ? state : SlotState::kBad;
    if (empty.state == SlotState::kBad) continue;
    // A frame decoded in place has already filled the first slot.
    if (target.data() == lent) continue;
    if (target.data() != raw.data()) std::memcpy(target.data(), raw.data(), raw.size());
  }
  placed.next_use = at;
  return placed;
}

bool ForwardArea::has_empty(std::uint64_t at, ContainerNumber container) const {
  for (; at < assembled_end_; at = window_->next_use(at)) {
    const Slot& one = slot(at);
    if (one.container == container && one.state == SlotState::kEmpty) return true;
  }
  return false;
}

void ForwardArea::mark_bad(std::uint64_t at, ContainerNumber container) {
  for (; at < end(); at = window_->next_use(at)) {
    Slot& one = slot(at);
    if (one.container == container && one.state == SlotState::kEmpty) one.state = SlotState::kBad;
  }
}

std::span<std::byte> ForwardArea::in_place(const format::ContainerHeader& header,
                                           std::uint32_t frame) const {
  const format::FrameEntry& entry = header.frames[frame];
  const std::uint64_t first = window_->first_use(header.chunks[entry.first_chunk].id);
  if (first >= assembled_end_ || assembled_end_ - first < entry.chunk_count) return {};
  const std::uint32_t area_number = slot(first).area;
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    const format::ChunkEntry& chunk = header.chunks[entry.first_chunk + i];
    // Another thread may be filling the slots of its chunks, so the ids are compared before a slot
    // is read.
    if (window_->id(first + i) != chunk.id) return {};
    const Slot& at = slot(first + i);
    if (at.container != header.number) return {};
    if (at.state != SlotState::kEmpty || at.area != area_number || at.bytes != chunk.raw_bytes) {
      return {};
    }
  }
  return {bytes(slot(first)).data(), entry.raw_bytes};
}

void ForwardArea::lend(const format::ContainerHeader& header, std::uint32_t frame,
                       std::span<const std::byte> raw, std::shared_ptr<const void> holder) const {
  const format::FrameEntry& entry = header.frames[frame];
  const Slot& first = slot(window_->first_use(header.chunks[entry.first_chunk].id));
  area(first).bytes->lend(first.offset, raw, std::move(holder));
}

}  // namespace varve::restore
