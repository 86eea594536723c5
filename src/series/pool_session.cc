// SPDX-License-Identifier: Apache-2.0
#include "series/pool_session.h"

#include <algorithm>
#include <utility>

namespace varve::series {

PoolSession::PoolSession(std::shared_ptr<index::FingerprintIndex> neighbours, Pool& pool,
                         index::PoolIndex& index, const layout::PoolOwner& owner,
                         Placement placement)
    : neighbours_(std::move(neighbours)),
      pool_(pool),
      index_(index),
      owner_(owner),
      placement_(placement),
      stream_(pool.next_stream()) {
  index_.open_stream(stream_, owner.series);
}

PoolSession::~PoolSession() { close(); }

void PoolSession::close() {
  if (closed_.exchange(true)) return;
  announce();
  index_.close_stream(stream_);
}

void PoolSession::find(std::span<const Fingerprint> fingerprints,
                       std::span<std::optional<ChunkId>> ids) const {
  neighbours_->find(fingerprints, ids);
  if (closed_) return;
  std::vector<std::size_t> places;
  std::vector<Fingerprint> missing;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] && !may_move(*ids[i])) continue;
      const auto known = unpublished_.find(index::tag_of(fingerprints[i]));
      if (known != unpublished_.end()) {
        ids[i] = known->second;
        continue;
      }
      places.push_back(i);
      missing.push_back(fingerprints[i]);
    }
  }
  if (missing.empty()) return;
  elsewhere_.begin_lookup(missing.size());
  std::vector<index::PoolHit> hits(missing.size());
  index_.lookup(stream_, missing, hits);
  ChunkId first;
  std::uint32_t left = 0;  // Chunks from `first` on known to be usable.
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const auto& hit = hits[i];
    if (!hit.id) {
      const bool is_new = !ids[places[i]];
      if (is_new && hit.elsewhere && *hit.elsewhere != owner_.series) elsewhere_.add(missing[i]);
      continue;
    }
    if (*hit.id < first || hit.id->value - first.value >= left) {
      first = *hit.id;
      left = usable(first, UINT32_MAX);
    }
    if (left != 0) ids[places[i]] = *hit.id;
  }
}

void PoolSession::find_elsewhere(std::span<const Fingerprint> fingerprints,
                                 std::span<bool> known) const {
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    known[i] = elsewhere_.contains(fingerprints[i]);
  }
}

std::uint32_t PoolSession::usable(ChunkId id, std::uint32_t count) const {
  const auto& lost = pool_.quarantined();
  if (lost.contains(id)) return 0;
  const auto where = pool_.store().chunks().locate(id);
  if (!where || !pool_.store().pin(owner_, where->container)) return 0;
  const auto skip = static_cast<std::uint32_t>(id.value - where->first.value);
  const auto stored = std::min(count, where->count - skip);
  const auto before = lost.count_below(id.value);  // `id` itself is not lost.
  if (before == lost.size()) return stored;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(stored, lost.select(before).value - id.value));
}

void PoolSession::insert(const Fingerprint& fingerprint, ChunkId id) {
  if (is_pool(id)) {
    const std::lock_guard lock(mutex_);
    unpublished_[index::tag_of(fingerprint)] = id;
    waiting_[id] = {fingerprint, false};
    return;
  }
  neighbours_->insert(fingerprint, id);
  if (placement_ != Placement::kLineagePool) return;
  own_.push_back(fingerprint);
  if (own_.size() < kAnnouncedMax || closed_) return;
  announce();
  own_.clear();
}

void PoolSession::announce() const {
  if (own_.empty()) return;
  index_.stored_in_series(stream_, owner_.series, own_);
  pool_.note_changed();
}

void PoolSession::replace(const Fingerprint& fingerprint, ChunkId id) {
  if (!is_pool(id)) {
    neighbours_->replace(fingerprint, id);
    return;
  }
  const std::lock_guard lock(mutex_);
  unpublished_[index::tag_of(fingerprint)] = id;
  waiting_[id] = {fingerprint, true};
}

std::size_t PoolSession::size() const {
  const std::lock_guard lock(mutex_);
  return neighbours_->size() + unpublished_.size();
}

std::uint32_t PoolSession::covers(ChunkId first, std::uint32_t count) const {
  if (!is_pool(first)) return neighbours_->covers(first, count);
  std::uint32_t covered = 0;
  while (!closed_ && covered < count) {
    const auto more = usable(first.plus(covered), count - covered);
    if (more == 0) break;
    covered += more;
  }
  return covered;
}

void PoolSession::publish(VersionNumber birth, std::uint32_t synced) {
  std::vector<index::PlacedChunk> placed;
  std::vector<index::PlacedChunk> replaced;
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  const auto end = waiting_.lower_bound(ChunkId::make(birth, synced));
  for (auto it = waiting_.lower_bound(ChunkId::make(birth, 0)); it != end; ++it) {
    const auto& [fingerprint, again] = it->second;
    (again ? replaced : placed).push_back({fingerprint, it->first});
  }
  if (placed.empty() && replaced.empty()) return;
  index_.placed(stream_, placed);
  index_.replace(stream_, replaced);
  pool_.note_changed();
  for (auto it = waiting_.lower_bound(ChunkId::make(birth, 0)); it != end;) {
    const auto known = unpublished_.find(index::tag_of(it->second.first));
    if (known != unpublished_.end() && known->second == it->first) unpublished_.erase(known);
    it = waiting_.erase(it);
  }
}

}  // namespace varve::series
