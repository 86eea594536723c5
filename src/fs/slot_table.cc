// SPDX-License-Identifier: Apache-2.0
#include "fs/slot_table.h"

namespace varve::fs {

Slot::Tree Slot::tree() const {
  const std::lock_guard lock(mutex_);
  return tree_;
}

void Slot::set_writer(std::shared_ptr<VersionWriter> writer) {
  const std::lock_guard lock(mutex_);
  if (tree_.reader != nullptr) return;  // Sealed meanwhile: that is for ever.
  tree_.writer = std::move(writer);
  was_open_ = true;
}

void Slot::set_reader(std::shared_ptr<VersionReader> reader) {
  const std::lock_guard lock(mutex_);
  tree_.writer = nullptr;
  tree_.reader = std::move(reader);
}

void Slot::seal(const SealOutcome& outcome, std::shared_ptr<VersionReader> reader) {
  const std::lock_guard lock(mutex_);
  rank_of_ = outcome.rank_of;
  tree_.writer = nullptr;
  tree_.reader = std::move(reader);
}

void Slot::drop() {
  const std::lock_guard lock(mutex_);
  tree_ = {};
}

std::optional<Rank> Slot::rank_of(Ino ino) const {
  if (ino == kRootIno) return Rank{0};
  const std::lock_guard lock(mutex_);
  return rank_of_.find(ino);
}

bool Slot::root_is_open_node() const {
  const std::lock_guard lock(mutex_);
  return was_open_;
}

Slot& SlotTable::series(const SeriesInfo& series) { return version(series, VersionNumber{}); }

Slot& SlotTable::version(const SeriesInfo& series, VersionNumber number) {
  if (Slot* known = find(series.id, number)) return *known;
  const std::unique_lock lock(mutex_);
  auto [place, is_new] = by_version_.try_emplace({series.id, number}, nullptr);
  if (is_new) {
    place->second = &slots_.emplace_back(static_cast<std::uint32_t>(slots_.size()), series, number);
  }
  return *place->second;
}

Slot* SlotTable::find(std::uint32_t index) {
  const std::shared_lock lock(mutex_);
  return index < slots_.size() ? &slots_[index] : nullptr;
}

Slot* SlotTable::find(SeriesId series, VersionNumber number) {
  const std::shared_lock lock(mutex_);
  const auto place = by_version_.find({series, number});
  return place == by_version_.end() ? nullptr : place->second;
}

void SlotTable::drop_all() {
  const std::unique_lock lock(mutex_);
  for (Slot& slot : slots_) slot.drop();
}

}  // namespace varve::fs
