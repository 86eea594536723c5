// SPDX-License-Identifier: Apache-2.0
#include "index/exact_pool_index.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "index/container_walk.h"

namespace varve::index {

namespace {

// Parts of the budget. A growing table needs half as much again for a moment. While the table
// becomes a run, a second table exists, with a sorted copy.
std::size_t pool_table_part(std::size_t budget) { return budget / 8; }
std::size_t pool_filter_part(std::size_t budget) { return budget / 16 * 7; }
std::size_t pool_beside_part(std::size_t budget) { return budget / 8; }

// Number of chunks added under one lock: the chunks of several containers.
constexpr std::size_t kAddedTogether = 4096;
// More runs of forgotten ids are not worth the memory: containers refuse forgotten chunks anyway.
constexpr std::size_t kForgottenRunsMax = std::size_t{1} << 16;
// Reads containers for add_missing().
constexpr StreamNumber kOwnStream{0xffffffffU};

// Returns the maximum number of entries of a table of at most `bytes` bytes.
std::size_t table_entries_max(std::size_t bytes) {
  std::size_t slots = 64;
  while (2 * slots * sizeof(Entry) <= bytes) slots *= 2;
  return slots / 4 * 3;
}

constexpr auto kAnyId = [](ChunkId) { return true; };

}  // namespace

/// A lookup of one fingerprint.
struct ExactPoolIndex::Lookup {
  Lookup(StreamNumber its_stream, const Fingerprint& its_fingerprint)
      : stream(its_stream), fingerprint(its_fingerprint) {}

  const StreamNumber stream;
  const Fingerprint& fingerprint;
  const Tag tag = tag_of(fingerprint);
  PoolHit hit;
  std::optional<ChunkId> marker;        // The newest marker.
  std::vector<ChunkId> named;           // Unconfirmed chunks of the tables, newest first.
  std::shared_ptr<const RunList> runs;  // The runs at the time of the search in the tables.
};

std::unique_ptr<ExactPoolIndex> ExactPoolIndex::open(PoolIndexFolder folder,
                                                     StoredFingerprints& stored,
                                                     std::size_t memory_bytes) {
  std::unique_ptr<ExactPoolIndex> index(
      new ExactPoolIndex(std::move(folder), stored, memory_bytes));
  index->saved_until_ = ChunkId::make(index->files_.open(), 0);
  index->publish();
  return index;
}

ExactPoolIndex::ExactPoolIndex(PoolIndexFolder folder, StoredFingerprints& stored,
                               std::size_t memory_bytes)
    : stored_(stored),
      entries_max_(table_entries_max(pool_table_part(memory_bytes))),
      filter_bytes_max_(pool_filter_part(memory_bytes)),
      files_(std::move(folder)),
      runs_(std::make_shared<const RunList>()),
      beside_(pool_beside_part(memory_bytes)) {}

void ExactPoolIndex::lookup(StreamNumber stream, std::span<const Fingerprint> fingerprints,
                            std::span<PoolHit> hits) {
  VARVE_ASSERT(hits.size() == fingerprints.size());
  for (std::size_t i = 0; i < hits.size(); ++i) hits[i] = find(stream, fingerprints[i]);
}

PoolHit ExactPoolIndex::find(StreamNumber stream, const Fingerprint& fingerprint) {
  Lookup lookup(stream, fingerprint);
  if (find_in_memory(lookup)) return lookup.hit;
  for (const ChunkId id : lookup.named) {
    if (confirm(lookup, id, {}) == RunSet::Verdict::kTake) return {id, std::nullopt};
  }
  if (find_in_runs(lookup)) return lookup.hit;
  if (lookup.marker) lookup.hit.elsewhere = PoolRuns::series_of(*lookup.marker);
  return lookup.hit;
}

bool ExactPoolIndex::find_in_memory(Lookup& lookup) const {
  const std::lock_guard lock(state_mutex_);
  lookup.runs = runs_;
  for (const TagTable* const table : {&std::as_const(table_), frozen_.get()}) {
    if (table == nullptr) continue;
    const auto id = table->find(lookup.tag, kAnyId);
    if (!id) continue;
    if (PoolRuns::is_marker(*id)) {
      if (!lookup.marker) lookup.marker = id;
    } else if (!is_forgotten(*id)) {
      lookup.named.push_back(*id);
    }
  }
  // The cache has confirmed chunks. The tables may have newer chunks.
  lookup.hit.id = beside_.find(
      lookup.tag, [&](ChunkId id) { return lookup.named.empty() || id == lookup.named.front(); });
  return lookup.hit.id.has_value();
}

bool ExactPoolIndex::find_in_runs(Lookup& lookup) {
  const RunList& runs = *lookup.runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto found = runs[i]->find(lookup.tag);
    if (!found) leave_out(runs[i], found.error());
    if (!found || !*found) continue;
    const ChunkId id = **found;
    if (PoolRuns::is_marker(id)) {
      if (!lookup.marker) lookup.marker = id;
      continue;
    }
    const auto verdict = confirm(lookup, id, std::span(runs).first(i));
    if (verdict == RunSet::Verdict::kTake) {
      lookup.hit.id = id;
      return true;
    }
    if (verdict == RunSet::Verdict::kWrong) {
      leave_out(runs[i],
                Error(ErrorCode::kCorrupt,
                      runs[i]->run()->path() + ": an entry names a chunk with another content"));
    }
  }
  return false;
}

RunSet::Verdict ExactPoolIndex::confirm(const Lookup& lookup, ChunkId id,
                                        std::span<const std::shared_ptr<FilteredRun>> newer) {
  using Verdict = RunSet::Verdict;
  LookAhead ahead;
  std::uint64_t epoch = 0;
  {
    const std::lock_guard lock(state_mutex_);
    if (is_forgotten(id)) return Verdict::kSkip;
    ahead = ahead_[lookup.stream];
    epoch = epoch_;
  }
  ahead.begin(id);
  bool is_there = false;
  bool is_same = false;
  std::vector<Entry> beside;
  const bool read = stored_.around(id, [&](const Fingerprint& its, ChunkId other) {
    if (other == id) {
      is_there = true;
      is_same = its == lookup.fingerprint;
    }
    if (!is_pool(other) || !ahead.takes(other)) return;
    // A newer run may name a chunk that replaced the cached chunk.
    const Tag tag = tag_of(its);
    if (std::ranges::none_of(newer, [&](const auto& run) { return run->may_have(tag); })) {
      beside.emplace_back(tag, other);
    }
  });
  if (!read || !is_there) return Verdict::kSkip;  // The chunk was freed, or is unreadable.
  if (!is_same) return Verdict::kWrong;
  const std::lock_guard lock(state_mutex_);
  if (is_forgotten(id)) return Verdict::kSkip;
  ahead_[lookup.stream] = ahead;
  if (epoch == epoch_) {
    for (const Entry& entry : beside) beside_.add(entry);
  }
  return Verdict::kTake;
}

void ExactPoolIndex::leave_out(const std::shared_ptr<FilteredRun>& run, const Error& error) {
  if (!run->mark_damaged()) return;
  base::log(base::LogLevel::kWarning,
            error.message() + "; the pool's index does without this part until it is rebuilt");
  const std::lock_guard lock(state_mutex_);
  damaged_.push_back(run);
  auto left = std::make_shared<RunList>(*runs_);
  std::erase(*left, run);
  runs_ = std::move(left);
}

void ExactPoolIndex::placed(StreamNumber /*stream*/, std::span<const PlacedChunk> chunks) {
  add(chunks, true);
}

void ExactPoolIndex::replace(StreamNumber /*stream*/, std::span<const PlacedChunk> chunks) {
  add(chunks, true);
}

void ExactPoolIndex::add(std::span<const PlacedChunk> chunks, bool is_new) {
  while (!chunks.empty()) {
    const auto part = chunks.first(std::min({chunks.size(), kAddedTogether, entries_max_}));
    chunks = chunks.subspan(part.size());
    const auto lock = lock_with_room(part.size());
    for (const auto& [fingerprint, id] : part) {
      VARVE_ASSERT(is_pool(id));
      put(tag_of(fingerprint), id);
      told_.add({id, 1});
      if (is_new) new_.add({id, 1});
      if (is_forgotten(id)) forgotten_ = forgotten_.subtract(base::IdRuns::from({{id, 1}}));
    }
  }
}

void ExactPoolIndex::add_unless_newer(std::span<const PlacedChunk> chunks) {
  std::vector<PlacedChunk> wanted;
  for (const auto& chunk : chunks) {
    const auto known = find(kOwnStream, chunk.fingerprint).id;
    if (known && chunk.id < *known) {
      const std::lock_guard lock(state_mutex_);
      told_.add({chunk.id, 1});
    } else {
      wanted.push_back(chunk);
    }
  }
  add(wanted, false);
}

std::unique_lock<std::mutex> ExactPoolIndex::lock_with_room(std::size_t entries) {
  while (true) {
    std::unique_lock lock(state_mutex_);
    if (has_room(entries)) return lock;
    lock.unlock();
    spill(entries);
  }
}

void ExactPoolIndex::put(const Tag& tag, ChunkId id) {
  if (const auto old = table_.find(tag, kAnyId)) {
    table_.change(tag, *old, id);
  } else {
    table_.put(Entry(tag, id));
  }
}

void ExactPoolIndex::stored_in_series(StreamNumber /*stream*/, SeriesId series,
                                      std::span<const Fingerprint> fingerprints) {
  const ChunkId marker = PoolRuns::marker_of(series);
  VARVE_ASSERT(series != kPoolSeries && PoolRuns::is_marker(marker));
  while (!fingerprints.empty()) {
    const auto part =
        fingerprints.first(std::min({fingerprints.size(), kAddedTogether, entries_max_}));
    fingerprints = fingerprints.subspan(part.size());
    const auto lock = lock_with_room(part.size());
    for (const auto& fingerprint : part) {
      const Tag tag = tag_of(fingerprint);
      const auto old = table_.find(tag, kAnyId);
      if (!old || PoolRuns::is_marker(*old) || is_forgotten(*old)) put(tag, marker);
    }
  }
}

void ExactPoolIndex::forget(const base::IdRuns& ids) {
  const std::lock_guard lock(state_mutex_);
  forgotten_ = forgotten_.unite(ids);
  if (forgotten_.runs().size() > kForgottenRunsMax) forgotten_ = {};
  const auto left = new_.take().subtract(ids);
  new_.add(left);
  beside_.clear();
  ++epoch_;
}

void ExactPoolIndex::close_stream(StreamNumber stream) {
  const std::lock_guard lock(state_mutex_);
  ahead_.erase(stream);
}

base::IdRuns ExactPoolIndex::covered() const {
  std::shared_ptr<const RunList> runs;
  base::IdRuns ids;
  {
    const std::lock_guard lock(state_mutex_);
    runs = runs_;
    ids = told_.ids().unite(frozen_told_);
  }
  for (const auto& run : *runs) ids = ids.unite(run->run()->covered());
  return ids;
}

void ExactPoolIndex::add_missing(const base::IdRuns& ids) {
  for_each_container_of(stored_, ids,
                        [&](const std::vector<PlacedChunk>& chunks) { add_unless_newer(chunks); });
  close_stream(kOwnStream);
}

std::size_t ExactPoolIndex::size() const {
  const std::lock_guard lock(state_mutex_);
  std::size_t entries = table_.size() + (frozen_ ? frozen_->size() : 0);
  for (const auto& run : *runs_) entries += run->run()->header().entries;
  return entries;
}

std::size_t ExactPoolIndex::memory_bytes() const {
  // An id run takes 16 bytes in a set, and its position 8.
  constexpr std::size_t kBytesPerIdRun = 24;
  const std::lock_guard lock(state_mutex_);
  std::size_t bytes = table_.bytes() + told_.bytes() + new_.bytes() + beside_.bytes();
  // A sorted copy of the former table has the size of the table's entries.
  if (frozen_) bytes += frozen_->bytes() + frozen_->size() * sizeof(Entry);
  bytes += (forgotten_.runs().size() + frozen_told_.runs().size()) * kBytesPerIdRun;
  for (const auto& run : *runs_) bytes += run->bytes();
  return bytes;
}

}  // namespace varve::index
