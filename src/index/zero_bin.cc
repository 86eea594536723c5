// SPDX-License-Identifier: Apache-2.0
#include "index/zero_bin.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/coding.h"

namespace varve::index {

namespace {
constexpr std::size_t kRoomMin = 64;
constexpr std::size_t kStoredEntryBytes =
    sizeof(Tag) + sizeof(std::uint64_t) + sizeof(std::uint16_t);
constexpr std::size_t kEntriesMax = std::size_t{1} << 20;
}  // namespace

ZeroBin::ZeroBin(const BinRules& rules)
    : rules_(rules),
      places_(2 * kRoomMin, SlotHeat::kNone),
      room_(kRoomMin),
      heat_(rules.heat_step) {}

Slot ZeroBin::slot_of(const Tag& tag) const {
  for (std::size_t i = home(tag);; i = (i + 1) & (places_.size() - 1)) {
    const Slot slot = places_[i];
    if (slot == SlotHeat::kNone || slots_[slot].tag == tag) return slot;
  }
}

std::optional<ChunkId> ZeroBin::find(const Tag& tag) const {
  const Slot slot = slot_of(tag);
  return slot == SlotHeat::kNone ? std::nullopt : std::optional(slots_[slot].id());
}

void ZeroBin::use(const Tag& tag) {
  const Slot slot = slot_of(tag);
  if (slot == SlotHeat::kNone) return;
  heat_.use(slot);
  drop_cold();
}

void ZeroBin::drop_cold() {
  if (rules_.entries_kept == 0 && heat_.cold() > used_ / 2) rebuild(false);
}

void ZeroBin::put(const Entry& entry) {
  Slot slot = slot_of(entry.tag);
  if (slot != SlotHeat::kNone) {
    slots_[slot] = entry;
    return use(entry.tag);
  }
  slot = make_room();
  slots_[slot] = entry;
  ++used_;
  insert_place(slot);
  heat_.add(slot, 0);
  heat_.use(slot, true);
  drop_cold();
}

void ZeroBin::take_over(const Entry& entry, std::uint32_t heat) {
  if (slot_of(entry.tag) != SlotHeat::kNone) return;
  const Slot slot = make_room();
  slots_[slot] = entry;
  ++used_;
  insert_place(slot);
  heat_.add(slot, heat);
}

Slot ZeroBin::make_room() {
  if (free_.empty() && slots_.size() == room_) {
    const Slot cold = used_ >= rules_.entries_kept ? heat_.coldest() : SlotHeat::kNone;
    if (cold != SlotHeat::kNone) {
      erase_slot(cold);
    } else {
      rebuild(true);
    }
  }
  if (!free_.empty()) {
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  slots_.emplace_back();
  return static_cast<Slot>(slots_.size() - 1);
}

void ZeroBin::erase(const Tag& tag) {
  const Slot slot = slot_of(tag);
  if (slot != SlotHeat::kNone) erase_slot(slot);
}

void ZeroBin::erase_slot(Slot slot) {
  erase_place(slot);
  heat_.remove(slot);
  slots_[slot] = Entry();
  free_.push_back(slot);
  --used_;
}

void ZeroBin::insert_place(Slot slot) {
  std::size_t i = home(slots_[slot].tag);
  while (places_[i] != SlotHeat::kNone) i = (i + 1) & (places_.size() - 1);
  places_[i] = slot;
}

// Closes the gap, so that a search never ends before an existing entry.
void ZeroBin::erase_place(Slot slot) {
  const std::size_t mask = places_.size() - 1;
  std::size_t gap = home(slots_[slot].tag);
  while (places_[gap] != slot) gap = (gap + 1) & mask;
  for (std::size_t i = (gap + 1) & mask; places_[i] != SlotHeat::kNone; i = (i + 1) & mask) {
    const std::size_t wanted = home(slots_[places_[i]].tag);
    if (((i - wanted) & mask) < ((i - gap) & mask)) continue;
    places_[gap] = places_[i];
    gap = i;
  }
  places_[gap] = SlotHeat::kNone;
}

void ZeroBin::rebuild(bool keep_cold) {
  ZeroBin fresh(rules_);
  const auto kept = keep_cold ? used_ : used_ - heat_.cold();
  fresh.room_ = std::max(2 * kept, kRoomMin);
  fresh.slots_.reserve(kept);
  fresh.places_.assign(std::bit_ceil(2 * fresh.room_), SlotHeat::kNone);
  for (Slot slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].is_empty()) continue;
    const auto heat = heat_.heat(slot);
    if (keep_cold || heat != 0) fresh.take_over(slots_[slot], heat);
  }
  *this = std::move(fresh);
}

void ZeroBin::encode(std::string& out) const {
  base::ByteWriter w(out);
  for (Slot slot = 0; slot < slots_.size(); ++slot) {
    const Entry& entry = slots_[slot];
    if (entry.is_empty()) continue;
    w.bytes(entry.tag);
    w.u64(entry.id().value);
    w.u16(static_cast<std::uint16_t>(std::min<std::uint32_t>(heat_.heat(slot), UINT16_MAX)));
  }
}

Result<ZeroBin> ZeroBin::decode(std::string_view bytes, const BinRules& rules) {
  const auto count = bytes.size() / kStoredEntryBytes;
  if (bytes.size() % kStoredEntryBytes != 0 || count > kEntriesMax) {
    return Error(ErrorCode::kCorrupt, "a bin of the index has a wrong size");
  }
  ZeroBin bin(rules);
  bin.room_ = std::max(count, kRoomMin);
  bin.places_.assign(std::bit_ceil(2 * bin.room_), SlotHeat::kNone);
  bin.slots_.reserve(count);
  base::ByteReader r(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    Tag tag;
    std::memcpy(tag.data(), r.bytes(tag.size()).data(), tag.size());
    const Entry entry(tag, ChunkId{r.u64()});
    const auto heat = r.u16();
    if (!entry.is_empty()) bin.take_over(entry, heat);
  }
  return bin;
}

}  // namespace varve::index
