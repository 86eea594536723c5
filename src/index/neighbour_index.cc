// SPDX-License-Identifier: Apache-2.0
#include "index/neighbour_index.h"

#include <algorithm>

#include "base/assert.h"
#include "base/log.h"

namespace varve::index {

namespace {

// Parts of the budget. A growing table needs half as much again for a moment.
std::size_t table_part(std::size_t budget) { return budget / 8 * 3; }
std::size_t cache_part(std::size_t budget) { return budget / 4; }
std::size_t beside_part(std::size_t budget) { return budget / 8; }

}  // namespace

NeighbourIndex::Disk::Disk(IndexStorage storage, NeighbourIndex& index)
    : owner(index),
      runs(std::move(storage.folder), cache_part(storage.memory_bytes)),
      stored(storage.stored),
      table_bytes_max(table_part(storage.memory_bytes)),
      beside(beside_part(storage.memory_bytes)) {}

NeighbourIndex::NeighbourIndex(base::IdRuns base, VersionNumber own)
    : base_(std::move(base)), own_(own) {}

NeighbourIndex::NeighbourIndex(base::IdRuns base, VersionNumber own, IndexStorage storage)
    : base_(std::move(base)), own_(own), disk_(std::make_unique<Disk>(std::move(storage), *this)) {}

NeighbourIndex::~NeighbourIndex() { stop_counting(); }

void NeighbourIndex::open_runs(const std::vector<RunRef>& refs) {
  VARVE_ASSERT(disk_ != nullptr && metrics_ == nullptr);
  disk_->runs.open(refs);
  entries_ += disk_->runs.entries();
}

Result<void> NeighbourIndex::import(io::File& snapshot, VersionNumber version) {
  VARVE_ASSERT(disk_ != nullptr && metrics_ == nullptr);
  VARVE_TRY(disk_->runs.import(snapshot, version));
  entries_ += disk_->runs.entries();
  return {};
}

base::IdRuns NeighbourIndex::missing() const {
  const auto left = base_.subtract(told_.ids());
  return disk_ ? left.subtract(disk_->runs.covered()) : left;
}

void NeighbourIndex::count_in(const IndexMetrics& metrics) {
  metrics_ = &metrics;
  metrics.entries.add(entries_);
}

void NeighbourIndex::stop_counting() {
  if (metrics_ != nullptr) metrics_->entries.remove(entries_);
  metrics_ = nullptr;
}

bool NeighbourIndex::is_usable(ChunkId id) const {
  return (id.birth() == own_ || base_.contains(id)) && !is_retired(id);
}

std::optional<ChunkId> NeighbourIndex::find_in_table(const Tag& tag) const {
  // The same content may have been stored again since the chunk was retired.
  return table_.find(tag, [&](ChunkId id) { return is_usable(id); });
}

RunSet::Verdict NeighbourIndex::confirm(ChunkId id, bool is_new,
                                        const Fingerprint& fingerprint) const {
  using Verdict = RunSet::Verdict;
  if (!is_usable(id)) return Verdict::kSkip;
  // The version's own chunks may be in no container yet, and no older run names them.
  if (id.birth() == own_) return is_new ? Verdict::kTake : Verdict::kSkip;
  if (disk_->stored == nullptr) return Verdict::kTake;
  bool is_same = false;
  Disk& disk = *disk_;
  disk.ahead.begin(id);
  const bool read = disk.stored->around(id, [&](const Fingerprint& its, ChunkId other) {
    if (other == id) is_same = its == fingerprint;
    if (other.birth() != own_ && disk.ahead.takes(other)) {
      disk.beside.add(Entry(tag_of(its), other));
    }
  });
  // Content in an unreadable container is stored again.
  if (!read) return Verdict::kSkip;
  return is_same ? Verdict::kTake : Verdict::kWrong;
}

std::optional<ChunkId> NeighbourIndex::find_stored(const Fingerprint& fingerprint,
                                                   const Tag& tag) const {
  if (!disk_) return std::nullopt;
  const auto is_usable_one = [&](ChunkId id) { return is_usable(id); };
  if (const auto id = disk_->beside.find(tag, is_usable_one)) return id;
  const auto check = [&](ChunkId id, bool is_new) { return confirm(id, is_new, fingerprint); };
  while (true) {
    const auto id = disk_->runs.find(tag, check);
    if (id || !disk_->runs.has_lost()) return id;
    disk_->owner.rebuild_lost();
    if (const auto rebuilt = find_in_table(tag)) return rebuilt;
  }
}

void NeighbourIndex::rebuild_lost() {
  const auto ids = disk_->runs.take_lost().intersect(base_);
  if (disk_->stored == nullptr) return;
  for (const auto& run : ids.runs()) {
    const std::uint64_t end = run.first.value + run.count;
    for (std::uint64_t at = run.first.value; at < end;) {
      std::uint64_t next = at + 1;
      const auto add = [&](const Fingerprint& fingerprint, ChunkId id) {
        if (id.value < at || id.value >= end) return;
        next = std::max(next, id.value + 1);
        if (!find_in_table(tag_of(fingerprint))) insert(fingerprint, id);
      };
      static_cast<void>(disk_->stored->around(ChunkId{at}, add));
      at = next;
    }
  }
  note_covered(ids);
}

std::optional<ChunkId> NeighbourIndex::find_any(const Fingerprint& fingerprint) const {
  const Tag tag = tag_of(fingerprint);
  if (const auto id = find_in_table(tag)) return id;
  return find_stored(fingerprint, tag);
}

void NeighbourIndex::find(std::span<const Fingerprint> fingerprints,
                          std::span<std::optional<ChunkId>> ids) const {
  VARVE_ASSERT(ids.size() == fingerprints.size());
  std::uint64_t hits = 0;
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    ids[i] = find_any(fingerprints[i]);
    hits += ids[i] ? 1 : 0;
  }
  if (metrics_ == nullptr) return;
  metrics_->lookups.add(fingerprints.size());
  metrics_->hits.add(hits);
}

std::uint32_t NeighbourIndex::covers(ChunkId first, std::uint32_t count) const {
  if (first.birth() == own_) return count;
  const auto rank = base_.rank(first);
  if (!rank) return 0;
  // Ranks and ids ascend in step exactly as long as no id is missing.
  const auto side_by_side = [&](std::uint32_t n) {
    return base_.rank(first.plus(n - 1)) == *rank + n - 1;
  };
  std::uint32_t low = 1;
  std::uint32_t high = count;
  while (low < high) {
    const std::uint32_t middle = high - (high - low) / 2;
    if (side_by_side(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const base::IdRuns* const retired = retired_.load(std::memory_order_acquire);
  if (retired == nullptr) return low;
  const auto gone = retired->intersect(base::IdRuns::from({{first, low}}));
  if (gone.size() == 0) return low;
  return static_cast<std::uint32_t>(gone.runs().front().first.value - first.value);
}

base::IdRuns NeighbourIndex::retire(const base::IdRuns& ids) {
  const base::IdRuns* const before = retired_.load(std::memory_order_relaxed);
  auto hidden = before != nullptr ? ids.subtract(*before) : ids;
  set_retired(before != nullptr ? before->unite(ids) : ids);
  return hidden;
}

void NeighbourIndex::restore(const base::IdRuns& ids) {
  const base::IdRuns* const before = retired_.load(std::memory_order_relaxed);
  if (before != nullptr && ids.size() != 0) set_retired(before->subtract(ids));
}

void NeighbourIndex::set_retired(base::IdRuns ids) {
  retired_sets_.push_back(std::make_unique<const base::IdRuns>(std::move(ids)));
  const base::IdRuns* const set = retired_sets_.back().get();
  retired_.store(set->size() != 0 ? set : nullptr, std::memory_order_release);
}

void NeighbourIndex::put(const Tag& tag, ChunkId id) {
  if (disk_ && table_.bytes_after_put() > disk_->table_bytes_max) {
    auto spilled = spill(nullptr);
    if (spilled) spilled = disk_->runs.merge_new();
    if (!spilled) {
      base::log(base::LogLevel::kWarning,
                spilled.error().message() + "; the index does not find some new chunks again");
    }
  }
  table_.put(Entry(tag, id));
  told_.add({id, 1});
}

void NeighbourIndex::insert(const Fingerprint& fingerprint, ChunkId id) {
  VARVE_ASSERT(id.birth() == own_ || base_.contains(id));
  put(tag_of(fingerprint), id);
  ++entries_;
  if (metrics_ != nullptr) metrics_->entries.add();
}

void NeighbourIndex::replace(const Fingerprint& fingerprint, ChunkId id) {
  VARVE_ASSERT(id.birth() == own_ || base_.contains(id));
  const Tag tag = tag_of(fingerprint);
  if (const auto old = find_in_table(tag)) {
    table_.change(tag, *old, id);
    told_.add({id, 1});
  } else if (find_stored(fingerprint, tag)) {
    put(tag, id);  // The table comes before the runs.
  } else {
    insert(fingerprint, id);  // Retired since the caller found it.
  }
}

Result<void> NeighbourIndex::spill(const base::IdRuns* live) {
  auto entries = table_.take_sorted();
  auto told = told_.take();
  if (live != nullptr) {
    std::erase_if(entries, [&](const Entry& entry) { return !live->contains(entry.id()); });
    told = told.intersect(*live);
  }
  // Of several entries with one tag, keeps the last visible entry.
  std::size_t kept = 0;
  for (const Entry& entry : entries) {
    if (kept == 0 || entries[kept - 1].tag != entry.tag) {
      entries[kept++] = entry;
    } else if (!is_retired(entry.id()) || is_retired(entries[kept - 1].id())) {
      entries[kept - 1] = entry;
    }
  }
  entries.resize(kept);
  auto written = disk_->runs.write(entries, told);
  if (!written && live != nullptr) {  // The caller may try again.
    for (const Entry& entry : entries) table_.put(entry);
    note_covered(told);
  }
  return written;
}

Result<std::vector<RunRef>> NeighbourIndex::save(const base::IdRuns& live) {
  VARVE_ASSERT(disk_ != nullptr);
  if (disk_->runs.has_lost()) rebuild_lost();
  VARVE_TRY(spill(&live));
  // A full disk may have room for the new entries only. A later seal merges.
  if (const auto merged = disk_->runs.merge(live); !merged) {
    base::log(base::LogLevel::kWarning, "merging the index: " + merged.error().message());
  }
  return disk_->runs.refs();
}

}  // namespace varve::index
