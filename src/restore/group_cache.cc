// SPDX-License-Identifier: Apache-2.0
#include "restore/group_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/assert.h"

namespace varve::restore {
namespace {

// Divides the worth of a group whose unit is read later anyway. The group then only delays the
// read, and chunks for areas after the delayed read need no memory before the read.
constexpr double kDelayFactor = 2;

}  // namespace

void GroupCache::add(std::size_t bytes) {
  bytes_ += bytes;
  meter_->add(bytes);
}

void GroupCache::remove(std::size_t bytes) {
  bytes_ -= bytes;
  meter_->remove(bytes);
}

/// Returns the memory of the group per byte of saved reading.
double GroupCache::cost(const Group& group) {
  const double cost = static_cast<double>(group.bytes) /
                      static_cast<double>(std::max<std::size_t>(group.read_bytes, 1));
  return group.is_before_read ? cost * kDelayFactor : cost;
}

GroupCache::Class& GroupCache::class_of(const Group& group) {
  const int exponent = std::ilogb(std::max(cost(group), 1e-9));
  const int middle = static_cast<int>(classes_.size()) / 2;
  return classes_[static_cast<std::size_t>(
      std::clamp(exponent + middle, 0, static_cast<int>(classes_.size()) - 1))];
}

void GroupCache::link(Chunks::iterator it, std::uint64_t next_use) {
  Chunk& chunk = it->second;
  chunk.group.area = next_use / area_chunks_;
  const auto [group, is_new] = groups_.try_emplace(chunk.group);
  if (is_new) {
    add(kGroupOverheadBytes);
    const auto before = group == groups_.begin() ? groups_.end() : std::prev(group);
    const auto after = std::next(group);
    const auto& unit = chunk.group.unit;
    group->second.is_before_read =
        (before != groups_.end() && before->first.unit == unit && before->second.is_before_read) ||
        (after != groups_.end() && after->first.unit == unit && after->second.is_before_read);
  } else {
    class_of(group->second).erase(group);
  }
  group->second.ids.push_back(it->first);
  group->second.bytes += chunk.size;
  group->second.read_bytes = chunk.read_bytes;
  class_of(group->second).insert(group);
}

void GroupCache::unlink(Chunks::iterator it) {
  const auto group = groups_.find(it->second.group);
  VARVE_ASSERT(group != groups_.end());
  class_of(group->second).erase(group);
  auto& ids = group->second.ids;
  *std::ranges::find(ids, it->first) = ids.back();
  ids.pop_back();
  group->second.bytes -= it->second.size;
  if (ids.empty()) {
    groups_.erase(group);
    remove(kGroupOverheadBytes);
  } else {
    class_of(group->second).insert(group);
  }
}

void GroupCache::forget(Chunks::iterator it) {
  unlink(it);
  remove(it->second.size + kChunkOverheadBytes);
  chunks_.erase(it);
}

/// Sets whether the unit's groups save a read, or only delay the read until a later area.
void GroupCache::set_before_read(const Unit& unit, bool is_before_read) {
  for (auto it = groups_.lower_bound({unit, 0}); it != groups_.end() && it->first.unit == unit;
       ++it) {
    if (it->second.is_before_read == is_before_read) continue;
    class_of(it->second).erase(it);
    it->second.is_before_read = is_before_read;
    class_of(it->second).insert(it);
  }
}

/// Removes a group and all later groups of the unit.
void GroupCache::forget_from(Groups::iterator group) {
  const Unit unit = group->first.unit;
  while (group != groups_.end() && group->first.unit == unit) {
    class_of(group->second).erase(group);
    for (const std::uint64_t id : group->second.ids) {
      const auto it = chunks_.find(id);
      remove(it->second.size + kChunkOverheadBytes);
      chunks_.erase(it);
    }
    remove(kGroupOverheadBytes);
    group = groups_.erase(group);
  }
  set_before_read(unit, true);
}

/// Returns the group that takes the most memory for the longest time per byte of reading.
GroupCache::Groups::iterator GroupCache::worst() {
  const std::uint64_t now = now_ / area_chunks_;
  auto found = groups_.end();
  double most = -1;
  for (const Class& one : classes_) {
    if (one.empty()) continue;
    const auto group = *one.rbegin();
    const std::uint64_t area = group->first.area;
    const double areas = area > now ? static_cast<double>(area - now + 1) : 1;
    const double score = cost(group->second) * areas;
    if (score <= most) continue;
    most = score;
    found = group;
  }
  return found;
}

void GroupCache::evict() {
  while (bytes_ > bytes_max_ && !groups_.empty()) forget_from(worst());
}

void GroupCache::set_bytes_max(std::size_t bytes_max) {
  bytes_max_ = bytes_max;
  evict();
}

void GroupCache::set_area_chunks(std::uint64_t chunks) {
  if (groups_.empty()) area_chunks_ = std::max<std::uint64_t>(chunks, 1);
}

std::span<const std::byte> GroupCache::find(const ChunkUse& use) {
  const auto it = chunks_.find(use.id.value);
  if (it == chunks_.end() || !it->second.bytes) return {};
  return {it->second.bytes.get(), it->second.size};
}

bool GroupCache::contains(const ChunkUse& use) const {
  const auto it = chunks_.find(use.id.value);
  return it != chunks_.end() && it->second.bytes;
}

void GroupCache::on_used(ChunkId id, std::uint64_t next_use) {
  const auto it = chunks_.find(id.value);
  if (it == chunks_.end()) return;
  if (next_use == kNever) return forget(it);
  unlink(it);
  link(it, next_use);
}

void GroupCache::on_entered(std::uint64_t position) {
  now_ = position;
  // Removes the chunks that could not be read.
  for (const std::uint64_t id : std::exchange(planned_, {})) {
    const auto it = chunks_.find(id);
    if (it != chunks_.end() && !it->second.bytes) forget(it);
  }
}

void GroupCache::on_planned(ChunkId id, const PlannedChunk& planned) {
  const auto [it, is_new] = chunks_.try_emplace(id.value);
  if (!is_new) return;
  Chunk& chunk = it->second;
  chunk.size = planned.bytes;
  chunk.group.unit = {planned.container, planned.frame};
  chunk.read_bytes = planned.read_bytes;
  add(chunk.size + kChunkOverheadBytes);
  link(it, planned.next_use);
  set_before_read(chunk.group.unit, false);
  planned_.push_back(id.value);
}

void GroupCache::on_all_planned() { evict(); }

void GroupCache::offer(ChunkId id, std::span<const std::byte> raw, std::uint64_t /*next_use*/,
                       bool /*is_used*/) {
  const auto it = chunks_.find(id.value);
  if (it == chunks_.end() || it->second.bytes || it->second.size != raw.size()) return;
  it->second.bytes = std::make_unique_for_overwrite<std::byte[]>(raw.size());
  std::memcpy(it->second.bytes.get(), raw.data(), raw.size());
}

}  // namespace varve::restore
