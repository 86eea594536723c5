// SPDX-License-Identifier: Apache-2.0
#include "index/bin_table.h"

#include <algorithm>

namespace varve::index {

namespace {

constexpr BinNumber kNoBin = UINT32_MAX;
constexpr std::size_t kSlotsMin = 64;

}  // namespace

std::optional<BinNumber> BinTable::find(std::uint64_t hook) const {
  if (slots_.empty()) return std::nullopt;
  for (std::size_t i = hook & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i] == kNoBin) return std::nullopt;
    if (places_[slots_[i]].hook == hook) return slots_[i];
  }
}

BinNumber BinTable::add(std::uint64_t hook) {
  const auto bin = static_cast<BinNumber>(places_.size());
  places_.push_back({hook, 0, 0});
  if (places_.size() * 4 <= slots_.size() * 3) {
    insert_slot(bin);
    return bin;
  }
  slots_.assign(std::max(2 * slots_.size(), kSlotsMin), kNoBin);
  for (BinNumber known = 0; known <= bin; ++known) insert_slot(known);
  return bin;
}

void BinTable::put(BinNumber bin, std::uint64_t offset, std::uint32_t bytes) {
  BinPlace& place = places_[bin];
  live_bytes_ += bytes;
  live_bytes_ -= place.bytes;
  place.offset = offset;
  place.bytes = bytes;
}

std::size_t BinTable::memory_bytes() const {
  return places_.capacity() * sizeof(BinPlace) + slots_.capacity() * sizeof(BinNumber);
}

void BinTable::insert_slot(BinNumber bin) {
  std::size_t i = places_[bin].hook & (slots_.size() - 1);
  while (slots_[i] != kNoBin) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = bin;
}

}  // namespace varve::index
