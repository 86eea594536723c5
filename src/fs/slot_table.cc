// SPDX-License-Identifier: Apache-2.0
#include "fs/slot_table.h"

#include <algorithm>

namespace varve::fs {
namespace {

// An index has 30 bits: a 0 bit, 13 bits of the series and 16 of the version; or a 1 bit and a
// counter.
constexpr unsigned kVersionBits = 16;
constexpr std::uint32_t kSeriesEnd = 1U << 13;
constexpr std::uint32_t kVersionEnd = 1U << kVersionBits;
constexpr std::uint32_t kGivenOut = kSeriesEnd << kVersionBits;

std::optional<std::uint32_t> index_of(SeriesId series, VersionNumber number) {
  const auto high = static_cast<std::uint32_t>(series);
  const auto low = static_cast<std::uint32_t>(number);
  if (high >= kSeriesEnd || low >= kVersionEnd) return std::nullopt;
  return high << kVersionBits | low;
}

}  // namespace

std::uint32_t Slot::generation_of_directory(Rank rank) const {
  if (!any_returned_) return generation_;
  const std::lock_guard lock(mutex_);
  const auto times = std::ranges::count_if(
      returned_, [rank](const RankSet& entries) { return entries.contains(rank); });
  return generation_ + static_cast<std::uint32_t>(times);
}

std::size_t Slot::times_returned() const {
  const std::lock_guard lock(mutex_);
  return returned_.size();
}

void Slot::note_returned(RankSet entries) {
  const std::lock_guard lock(mutex_);
  returned_.push_back(std::move(entries));
  any_returned_ = true;
}

Slot::Tree Slot::tree() const {
  const std::lock_guard lock(mutex_);
  return tree_;
}

std::string Slot::series_name() const {
  const std::lock_guard lock(mutex_);
  return series_name_;
}

void Slot::rename_series(std::string name) {
  const std::lock_guard lock(mutex_);
  series_name_ = std::move(name);
}

void Slot::set_writer(std::shared_ptr<VersionWriter> writer) {
  const std::lock_guard lock(mutex_);
  if (tree_.reader != nullptr) return;  // The version was sealed in the meantime, which is final.
  removed_.reset();
  tree_.writer = std::move(writer);
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
  rank_of_ = nullptr;
}

void Slot::remove(const struct stat& last) {
  const std::lock_guard lock(mutex_);
  tree_ = {};
  rank_of_ = nullptr;
  removed_ = last;
}

std::optional<struct stat> Slot::removed() const {
  const std::lock_guard lock(mutex_);
  return removed_;
}

std::optional<Rank> Slot::rank_of(Ino ino) const {
  if (ino == kRootIno) return Rank{0};
  const std::lock_guard lock(mutex_);
  return rank_of_ == nullptr ? std::nullopt : rank_of_->find(ino);
}

Slot& SlotTable::series(const SeriesInfo& series) { return version(series, VersionNumber{}); }

Slot& SlotTable::version(const SeriesInfo& series, VersionNumber number) {
  if (Slot* known = find(series.id, number)) return *known;
  const std::unique_lock lock(mutex_);
  auto [place, is_new] = by_version_.try_emplace({series.id, number}, nullptr);
  if (is_new) {
    auto index = index_of(series.id, number);
    if (!index) index = kGivenOut + given_out_++;
    place->second = &slots_.emplace_back(*index, series, number);
    by_index_[*index] = place->second;
  }
  return *place->second;
}

std::optional<std::pair<SeriesId, VersionNumber>> SlotTable::place_of(std::uint32_t index) {
  if (index >= kGivenOut) return std::nullopt;
  return std::pair{static_cast<SeriesId>(index >> kVersionBits),
                   static_cast<VersionNumber>(index % kVersionEnd)};
}

Slot* SlotTable::find(std::uint32_t index) {
  const std::shared_lock lock(mutex_);
  const auto place = by_index_.find(index);
  return place == by_index_.end() ? nullptr : place->second;
}

Slot* SlotTable::find(SeriesId series, VersionNumber number) {
  const std::shared_lock lock(mutex_);
  const auto place = by_version_.find({series, number});
  return place == by_version_.end() ? nullptr : place->second;
}

void SlotTable::rename_series(SeriesId series, const std::string& name) {
  const std::unique_lock lock(mutex_);
  for (Slot& slot : slots_) {
    if (slot.series().id == series) slot.rename_series(name);
  }
}

void SlotTable::drop_all() {
  const std::unique_lock lock(mutex_);
  for (Slot& slot : slots_) slot.drop();
}

}  // namespace varve::fs
