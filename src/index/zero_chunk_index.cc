// SPDX-License-Identifier: Apache-2.0
#include "index/zero_chunk_index.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/log.h"
#include "index/container_walk.h"

namespace varve::index {

namespace {

constexpr std::uint32_t kBitsMin = 6;
constexpr std::uint32_t kBitsMax = 10;
// Stands for the bin of a hook that is not stored yet.
constexpr BinNumber kNewBin = UINT32_MAX;
constexpr std::size_t kMissedMax = std::size_t{1} << 16;
constexpr std::size_t kFreedRunsMax = std::size_t{1} << 16;
constexpr std::size_t kBinEntryBytes = 30;
// An element of std::unordered_map, with its part of the table.
constexpr std::size_t kBytesPerMapped = 40;
constexpr StreamNumber kFillingStream{0xffffffffU};

ZeroChunkOptions in_bounds(ZeroChunkOptions options) {
  options.hook_bits = std::clamp(options.hook_bits, kBitsMin, kBitsMax);
  options.resident_max = std::max<std::size_t>(options.resident_max, 2);
  if (options.rules.heat_step == 0) options.rules.heat_step = (1U << options.hook_bits) - 1;
  return options;
}

std::uint64_t key_of(const Tag& tag) { return base::load_le<std::uint64_t>(tag.data() + 8); }

bool is_marker(ChunkId id) { return PoolRuns::is_marker(id); }

}  // namespace

std::unique_ptr<ZeroChunkIndex> ZeroChunkIndex::open(const PoolIndexFolder& folder,
                                                     StoredFingerprints& stored,
                                                     const ZeroChunkOptions& options) {
  const auto bits = in_bounds(options).hook_bits;
  return open(ZeroFiles::open(*folder.runs.files, folder.runs.directory, bits), stored, options);
}

std::unique_ptr<ZeroChunkIndex> ZeroChunkIndex::open(std::unique_ptr<ZeroFiles> files,
                                                     StoredFingerprints& stored,
                                                     ZeroChunkOptions options) {
  options.hook_bits = files->parameter();
  return std::unique_ptr<ZeroChunkIndex>(
      new ZeroChunkIndex(std::move(files), stored, in_bounds(options)));
}

ZeroChunkIndex::ZeroChunkIndex(std::unique_ptr<ZeroFiles> files, StoredFingerprints& stored,
                               const ZeroChunkOptions& options)
    : stored_(stored),
      options_(options),
      hook_mask_((std::uint64_t{1} << options.hook_bits) - 1),
      files_(std::move(files)),
      confirmed_(options.memory_bytes / 4) {
  if (files_->bins().size() == 0) files_->add(0);
}

bool ZeroChunkIndex::is_hook(const Tag& tag) const {
  return (base::load_le<std::uint64_t>(tag.data()) & hook_mask_) == 0;
}

// ---- Lookups. ----

void ZeroChunkIndex::lookup(StreamNumber stream, std::span<const Fingerprint> fingerprints,
                            std::span<PoolHit> hits) {
  VARVE_ASSERT(hits.size() == fingerprints.size());
  for (const auto& fingerprint : fingerprints) {
    if (is_hook(tag_of(fingerprint))) prefetch(fingerprint);
  }
  for (std::size_t i = 0; i < hits.size(); ++i) hits[i] = find(stream, fingerprints[i]);
}

// Brings the bin of a hook, and the chunks stored beside the hook, to memory: the chunks before the
// hook in the stream may be among them.
void ZeroChunkIndex::prefetch(const Fingerprint& fingerprint) {
  const Tag tag = tag_of(fingerprint);
  Lock lock(mutex_);
  const auto known = files_->bins().find(key_of(tag));
  if (!known) return;
  const auto id = load(*known).bin.find(tag);
  if (!id || is_marker(*id) || forgotten_.contains(*id)) return;
  if (!confirmed_.find(tag, [&](ChunkId one) { return one == *id; })) {
    static_cast<void>(confirm(fingerprint, *id, lock));
  }
}

void ZeroChunkIndex::follow_hook(Stream& stream, const Tag& tag) {
  const auto known = files_->bins().find(key_of(tag));
  stream.present = known.value_or(kNewBin);
  if (known) ++counts_.hook_hits;
}

PoolHit ZeroChunkIndex::find(StreamNumber stream, const Fingerprint& fingerprint) {
  const Tag tag = tag_of(fingerprint);
  Lock lock(mutex_);
  ++counts_.lookups;
  Stream& its = streams_[stream];
  if (is_hook(tag)) follow_hook(its, tag);
  const BinNumber present = its.present;
  if (present != kNewBin) load(present);
  const auto id = find_resident(tag, present);
  if (id && !is_marker(*id)) {
    const auto cached = confirmed_.find(tag, [&](ChunkId one) { return one == *id; });
    if (cached || confirm(fingerprint, *id, lock)) {
      ++counts_.hits;
      return {id, std::nullopt};
    }
    erase_resident(tag, *id);
  }
  if (const auto beside = confirmed_.find(tag, [](ChunkId) { return true; })) {
    ++counts_.hits;
    return {beside, std::nullopt};
  }
  auto& missed = streams_[stream].missed;
  if (missed.size() >= kMissedMax) missed.clear();
  missed[key_of(tag)] = present;
  if (id && is_marker(*id)) return {std::nullopt, PoolRuns::series_of(*id)};
  return {};
}

std::optional<ChunkId> ZeroChunkIndex::find_resident(const Tag& tag, BinNumber first) {
  const auto is_sought = [&](const Resident& one) { return one.bin.find(tag).has_value(); };
  auto found = resident_.end();
  if (!resident_.empty() && resident_.front().number == first && is_sought(resident_.front())) {
    found = resident_.begin();
  } else {
    // A chunk of the pool beats a marker.
    for (auto it = resident_.begin(); it != resident_.end(); ++it) {
      if (!is_sought(*it)) continue;
      if (found == resident_.end() || is_marker(*found->bin.find(tag))) found = it;
      if (!is_marker(*found->bin.find(tag))) break;
    }
  }
  if (found == resident_.end()) return std::nullopt;
  const auto id = found->bin.find(tag);
  if (forgotten_.contains(*id)) {
    found->bin.erase(tag);
    found->is_dirty = true;
    return std::nullopt;
  }
  found->bin.use(tag);
  return id;
}

bool ZeroChunkIndex::confirm(const Fingerprint& fingerprint, ChunkId id, Lock& lock) {
  const auto epoch = epoch_;
  lock.unlock();
  bool is_same = false;
  std::vector<Entry> beside;
  const bool read = stored_.around(id, [&](const Fingerprint& its, ChunkId other) {
    if (other == id) is_same = its == fingerprint;
    if (is_pool(other)) beside.emplace_back(tag_of(its), other);
  });
  lock.lock();
  if (!read || !is_same || forgotten_.contains(id)) return false;
  if (epoch == epoch_) {
    for (const Entry& entry : beside) confirmed_.add(entry);
  }
  return true;
}

void ZeroChunkIndex::erase_resident(const Tag& tag, ChunkId id) {
  for (auto& one : resident_) {
    if (one.bin.find(tag) != id) continue;
    one.bin.erase(tag);
    one.is_dirty = true;
  }
}

// ---- Bins. ----

ZeroChunkIndex::Resident& ZeroChunkIndex::load(BinNumber bin) {
  const auto known =
      std::ranges::find_if(resident_, [&](const auto& one) { return one.number == bin; });
  if (known != resident_.end()) {
    resident_.splice(resident_.begin(), resident_, known);
    return resident_.front();
  }
  ZeroBin content(options_.rules);
  if (files_->bins()[bin].bytes != 0) {
    ++counts_.bins_read;
    const auto bytes = files_->read(bin);
    auto decoded = bytes ? ZeroBin::decode(*bytes, options_.rules)
                         : Result<ZeroBin>(Error(bytes.error().code(), bytes.error().message()));
    if (decoded) {
      content = std::move(*decoded);
    } else {
      base::log(base::LogLevel::kWarning,
                decoded.error().message() + "; the pool's index does without it");
    }
  }
  resident_.push_front({bin, std::move(content), false});
  evict();
  return resident_.front();
}

std::size_t ZeroChunkIndex::resident_bytes() const {
  std::size_t bytes = 0;
  for (const auto& one : resident_) bytes += one.bin.bytes() + sizeof(Resident);
  return bytes;
}

void ZeroChunkIndex::evict() {
  while (resident_.size() > 1 && (resident_.size() > options_.resident_max ||
                                  resident_bytes() > options_.memory_bytes / 2)) {
    const auto written = write_back(resident_.back());
    if (!written) {
      base::log(
          base::LogLevel::kWarning,
          written.error().message() + "; the pool's index does not find some new chunks again");
    }
    resident_.pop_back();
  }
}

Result<void> ZeroChunkIndex::write_back(Resident& resident) {
  if (!resident.is_dirty) return {};
  std::string bytes;
  resident.bin.encode(bytes);
  VARVE_TRY(files_->write(resident.number, bytes));
  ++counts_.bins_written;
  resident.is_dirty = false;
  return {};
}

// ---- New chunks. ----

BinNumber ZeroChunkIndex::bin_for(Stream& stream, const Tag& tag) {
  if (is_hook(tag)) {
    const auto known = files_->bins().find(key_of(tag));
    stream.target = known ? *known : files_->add(key_of(tag));
    stream.missed.erase(key_of(tag));
    return stream.target;
  }
  const auto missed = stream.missed.find(key_of(tag));
  if (missed == stream.missed.end()) return stream.target;
  const BinNumber bin = missed->second;
  stream.missed.erase(missed);
  return bin == kNewBin ? stream.target : bin;
}

void ZeroChunkIndex::put(Stream& stream, const Entry& entry) {
  const BinNumber bin = bin_for(stream, entry.tag);
  const bool marks = is_marker(entry.id());
  for (auto& one : resident_) {
    const auto old = one.bin.find(entry.tag);
    if (!old) continue;
    if (marks && !is_marker(*old) && !forgotten_.contains(*old)) return;
    if (marks && one.number != bin) continue;
    one.bin.put(entry);
    one.is_dirty = true;
  }
  Resident& target = load(bin);
  const auto old = target.bin.find(entry.tag);
  if (old == entry.id()) return;
  if (old && marks && !is_marker(*old) && !forgotten_.contains(*old)) return;
  target.bin.put(entry);
  target.is_dirty = true;
}

void ZeroChunkIndex::placed(StreamNumber stream, std::span<const PlacedChunk> chunks) {
  const Lock lock(mutex_);
  Stream& its = streams_[stream];
  for (const auto& [fingerprint, id] : chunks) {
    VARVE_ASSERT(is_pool(id));
    put(its, Entry(tag_of(fingerprint), id));
    told_.add({id, 1});
    new_.add({id, 1});
    if (forgotten_.contains(id)) forgotten_ = forgotten_.subtract(base::IdRuns::from({{id, 1}}));
  }
}

void ZeroChunkIndex::replace(StreamNumber stream, std::span<const PlacedChunk> chunks) {
  placed(stream, chunks);
}

void ZeroChunkIndex::stored_in_series(StreamNumber stream, SeriesId series,
                                      std::span<const Fingerprint> fingerprints) {
  const ChunkId marker = PoolRuns::marker_of(series);
  VARVE_ASSERT(series != kPoolSeries && is_marker(marker));
  const Lock lock(mutex_);
  Stream& its = streams_[stream];
  for (const auto& fingerprint : fingerprints) put(its, Entry(tag_of(fingerprint), marker));
}

void ZeroChunkIndex::add_missing(const base::IdRuns& ids) {
  for_each_container_of(stored_, ids, [&](const std::vector<PlacedChunk>& chunks) {
    const Lock lock(mutex_);
    Stream& own = streams_[kFillingStream];
    for (const auto& [fingerprint, id] : chunks) {
      const Entry entry(tag_of(fingerprint), id);
      const auto is_newer = [&](const Resident& one) {
        const auto known = one.bin.find(entry.tag);
        return known && !is_marker(*known) && entry.id() < *known && !forgotten_.contains(*known);
      };
      if (std::ranges::none_of(resident_, is_newer)) put(own, entry);
      told_.add({entry.id(), 1});
    }
  });
  close_stream(kFillingStream);
}

// ---- The rest. ----

void ZeroChunkIndex::forget(const base::IdRuns& ids) {
  const Lock lock(mutex_);
  forgotten_ = forgotten_.unite(ids);
  if (forgotten_.runs().size() > kFreedRunsMax) forgotten_ = {};
  const auto left = new_.take().subtract(ids);
  new_.add(left);
  confirmed_.clear();
  ++epoch_;
}

void ZeroChunkIndex::close_stream(StreamNumber stream) {
  const Lock lock(mutex_);
  streams_.erase(stream);
}

Result<void> ZeroChunkIndex::save(const PoolChunks& chunks) {
  const Lock lock(mutex_);
  for (auto& one : resident_) VARVE_TRY(write_back(one));
  const auto told = told_.ids();
  const auto known = files_->told().unite(told);
  const auto saved = ChunkId::make(files_->complete_below(), 0);
  VARVE_TRY_ASSIGN(const auto newest, chunks.from(saved));
  const auto missed = newest.subtract(known);
  auto complete_below = chunks.complete_below;
  if (missed.size() != 0) complete_below = std::min(complete_below, missed.select(0).birth());
  VARVE_TRY(files_->commit(told, complete_below));
  static_cast<void>(told_.take());
  if (files_->wants_compaction()) {
    VARVE_TRY_ASSIGN(const auto live, chunks.from({}));
    VARVE_TRY(compact(live.unite(new_.ids()).subtract(forgotten_)));
  }
  forgotten_ = forgotten_.intersect(files_->told());
  return {};
}

ChunkId ZeroChunkIndex::saved_until() const {
  const Lock lock(mutex_);
  return ChunkId::make(files_->complete_below(), 0);
}

Result<void> ZeroChunkIndex::compact(const base::IdRuns& keep) {
  const auto change = [&](std::string bytes) {
    const auto bin = ZeroBin::decode(bytes, options_.rules);
    std::string kept;
    if (!bin) return kept;
    ZeroBin left(options_.rules);
    const auto& slots = bin->slots();
    for (Slot slot = 0; slot < slots.size(); ++slot) {
      const Entry& entry = slots[slot];
      if (entry.is_empty()) continue;
      if (is_marker(entry.id()) || keep.contains(entry.id())) {
        left.take_over(entry, bin->heat_of(slot));
      }
    }
    left.encode(kept);
    return kept;
  };
  return files_->compact(files_->told().intersect(keep), change);
}

base::IdRuns ZeroChunkIndex::covered() const {
  const Lock lock(mutex_);
  return files_->told().unite(told_.ids());
}

std::size_t ZeroChunkIndex::size() const {
  const Lock lock(mutex_);
  std::size_t entries = 0;
  std::size_t stored = 0;
  for (const auto& place : files_->bins().places()) stored += place.bytes / kBinEntryBytes;
  for (const auto& one : resident_) {
    stored -= files_->bins()[one.number].bytes / kBinEntryBytes;
    entries += one.bin.size();
  }
  return entries + stored;
}

std::size_t ZeroChunkIndex::memory_bytes() const {
  const Lock lock(mutex_);
  std::size_t bytes = resident_bytes() + files_->memory_bytes() + confirmed_.bytes() +
                      told_.bytes() + new_.bytes() + forgotten_.runs().size() * sizeof(base::IdRun);
  for (const auto& [number, stream] : streams_) bytes += stream.missed.size() * kBytesPerMapped;
  return bytes;
}

std::size_t ZeroChunkIndex::table_bytes() const {
  const Lock lock(mutex_);
  return files_->memory_bytes();
}

ZeroChunkCounts ZeroChunkIndex::counts() const {
  const Lock lock(mutex_);
  auto counts = counts_;
  counts.bytes_read = files_->bytes_read();
  counts.bytes_written = files_->bytes_written();
  return counts;
}

}  // namespace varve::index
