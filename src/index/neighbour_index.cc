// SPDX-License-Identifier: Apache-2.0
#include "index/neighbour_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"

namespace varve::index {

namespace {

// Snapshot: magic u32, version u32, series u32, number u32, entries u64, id-run bytes u64,
// id runs, entries {tag 20, rank u32} ascending by tag, XXH3-64 of all before.
constexpr std::uint32_t kMagic = 0x58495656;  // "VVIX"
constexpr std::uint32_t kSnapshotVersion = 1;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kSlotsMin = 1024;
constexpr std::uint64_t kExpectedMax = 1U << 20;

__extension__ using Wide = unsigned __int128;

std::size_t slots_for(std::uint64_t entries) {
  return std::max(kSlotsMin, static_cast<std::size_t>(entries) * 3 / 2);
}

}  // namespace

NeighbourIndex::NeighbourIndex(base::IdRuns base, VersionNumber own)
    : NeighbourIndex(std::move(base), own, 0) {
  slots_.resize(slots_for(std::min(base_.size(), kExpectedMax)));
}

NeighbourIndex::~NeighbourIndex() { stop_counting(); }

void NeighbourIndex::count_in(const IndexMetrics& metrics) {
  metrics_ = &metrics;
  metrics.entries.add(used_);
}

void NeighbourIndex::stop_counting() {
  if (metrics_ != nullptr) metrics_->entries.remove(used_);
  metrics_ = nullptr;
}

std::size_t NeighbourIndex::home(const std::byte* tag) const {
  // The mapping preserves order, so a sorted snapshot fills the table front to back.
  const auto prefix = __builtin_bswap64(base::load_le<std::uint64_t>(tag));
  return static_cast<std::size_t>((static_cast<Wide>(prefix) * slots_.size()) >> 64);
}

ChunkId NeighbourIndex::id_of(std::uint32_t rank) const {
  const std::uint64_t known = base_.size();
  if (rank < known) return base_.select(rank);
  return ChunkId::make(own_, static_cast<std::uint32_t>(rank - known));
}

std::optional<std::size_t> NeighbourIndex::place_of(const Fingerprint& fingerprint) const {
  for (std::size_t i = home(fingerprint.data());; i = i + 1 == slots_.size() ? 0 : i + 1) {
    const Slot& slot = slots_[i];
    if (slot.rank == kEmpty) return std::nullopt;
    if (std::memcmp(slot.tag.data(), fingerprint.data(), kTagBytes) != 0) continue;
    // The same content may have been stored again since the chunk was retired.
    if (!is_retired(id_of(slot.rank))) return i;
  }
}

void NeighbourIndex::find(std::span<const Fingerprint> fingerprints,
                          std::span<std::optional<ChunkId>> ids) const {
  VARVE_ASSERT(ids.size() == fingerprints.size());
  std::uint64_t hits = 0;
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    const auto place = place_of(fingerprints[i]);
    ids[i] = place ? std::optional(id_of(slots_[*place].rank)) : std::nullopt;
    hits += place ? 1 : 0;
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

std::uint64_t NeighbourIndex::rank_of(ChunkId id) const {
  if (id.birth() == own_) return base_.size() + id.ordinal();
  const auto found = base_.rank(id);
  VARVE_ASSERT(found.has_value());
  return *found;
}

void NeighbourIndex::insert(const Fingerprint& fingerprint, ChunkId id) {
  Slot slot;
  std::memcpy(slot.tag.data(), fingerprint.data(), kTagBytes);
  const std::uint64_t rank = rank_of(id);
  // Beyond 2^32 - 1 chunks (32 TiB at 8 KiB) the index does not find new ones again. That costs
  // space, never data.
  if (rank >= kEmpty) return;
  slot.rank = static_cast<std::uint32_t>(rank);
  if ((used_ + 1) * 4 > slots_.size() * 3) grow();
  put(slot);
  if (metrics_ != nullptr) metrics_->entries.add();
}

void NeighbourIndex::replace(const Fingerprint& fingerprint, ChunkId id) {
  const auto place = place_of(fingerprint);
  if (!place) return insert(fingerprint, id);  // Retired since the caller found it.
  const std::uint64_t rank = rank_of(id);
  if (rank >= kEmpty) return;  // find() keeps the old copy.
  slots_[*place].rank = static_cast<std::uint32_t>(rank);
}

void NeighbourIndex::put(const Slot& slot) {
  std::size_t i = home(slot.tag.data());
  while (slots_[i].rank != kEmpty) i = i + 1 == slots_.size() ? 0 : i + 1;
  slots_[i] = slot;
  ++used_;
}

void NeighbourIndex::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.rank != kEmpty) put(slot);
  }
}

std::unique_ptr<NeighbourIndex> NeighbourIndex::over(const base::IdRuns& base) const {
  std::unique_ptr<NeighbourIndex> index(new NeighbourIndex(base, own_, slots_.size()));
  for (Slot slot : slots_) {
    if (slot.rank == kEmpty) continue;
    const auto rank = base.rank(id_of(slot.rank));
    if (!rank || *rank >= kEmpty) continue;
    slot.rank = static_cast<std::uint32_t>(*rank);
    index->put(slot);
  }
  return index;
}

std::string NeighbourIndex::encode(SeriesId series, VersionNumber number,
                                   const base::IdRuns& live) const {
  std::vector<Slot> kept;
  kept.reserve(used_);
  for (const Slot& slot : slots_) {
    if (slot.rank == kEmpty) continue;
    const auto rank = live.rank(id_of(slot.rank));
    if (!rank || *rank >= kEmpty) continue;
    kept.push_back(slot);
    kept.back().rank = static_cast<std::uint32_t>(*rank);
  }
  std::sort(kept.begin(), kept.end(), [](const Slot& a, const Slot& b) { return a.tag < b.tag; });
  std::string runs;
  live.encode(runs);
  std::string out;
  out.reserve(kHeaderBytes + runs.size() + kept.size() * sizeof(Slot) + kChecksumBytes);
  base::ByteWriter w(out);
  w.u32(kMagic);
  w.u32(kSnapshotVersion);
  w.u32(static_cast<std::uint32_t>(series));
  w.u32(static_cast<std::uint32_t>(number));
  w.u64(kept.size());
  w.u64(runs.size());
  w.text(runs);
  for (const Slot& slot : kept) {
    w.bytes(slot.tag);
    w.u32(slot.rank);
  }
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

Result<std::unique_ptr<NeighbourIndex>> NeighbourIndex::decode(std::string_view snapshot,
                                                               SeriesId series,
                                                               VersionNumber number,
                                                               VersionNumber own) {
  const Error damaged(ErrorCode::kCorrupt, "the snapshot of the index is damaged");
  if (snapshot.size() < kHeaderBytes + kChecksumBytes) return damaged;
  const auto body = snapshot.substr(0, snapshot.size() - kChecksumBytes);
  if (base::load_le<std::uint64_t>(base::as_bytes(snapshot).data() + body.size()) !=
      base::checksum64(base::as_bytes(body))) {
    return damaged;
  }
  base::ByteReader r(body);
  const bool ours = r.u32() == kMagic && r.u32() == kSnapshotVersion &&
                    r.u32() == static_cast<std::uint32_t>(series) &&
                    r.u32() == static_cast<std::uint32_t>(number);
  const std::uint64_t entries = r.u64();
  const std::uint64_t run_bytes = r.u64();
  const auto runs = r.text(run_bytes);
  if (!ours || !r.ok() || entries > r.left() / sizeof(Slot) || entries * sizeof(Slot) != r.left()) {
    return damaged;
  }
  VARVE_TRY_ASSIGN(auto base_ids, base::IdRuns::decode(runs));
  if (entries > base_ids.size()) return damaged;  // More than the table has room for.
  std::unique_ptr<NeighbourIndex> index(
      new NeighbourIndex(std::move(base_ids), own, slots_for(entries)));
  for (std::uint64_t i = 0; i < entries; ++i) {
    Slot slot;
    const auto tag = r.bytes(kTagBytes);
    std::copy(tag.begin(), tag.end(), slot.tag.begin());
    slot.rank = r.u32();
    if (slot.rank >= index->base_.size()) return damaged;
    index->put(slot);
  }
  return index;
}

}  // namespace varve::index
