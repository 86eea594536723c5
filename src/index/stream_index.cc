// SPDX-License-Identifier: Apache-2.0
#include "index/stream_index.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "index/clp_library.h"
#include "index/container_walk.h"
#include "index/exact_pool_index.h"

namespace varve::index {

namespace {

// An element of std::unordered_map, with its part of the table.
constexpr std::size_t kBytesPerStream = 96;
constexpr StreamNumber kNoStream{0xffffffffU};

std::size_t stream_entries(std::size_t memory_bytes) {
  return std::bit_floor(memory_bytes / 4 * 3 / TleCache::kBytesPerEntry);
}

TleOptions tle_options(const StreamOptions& options) {
  TleOptions tle;
  tle.entries = stream_entries(options.memory_bytes);
  tle.seed = options.seed;
  tle.rule = options.rule;
  return tle;
}

bool marks_series(ChunkId id) { return PoolRuns::is_marker(id); }

}  // namespace

std::unique_ptr<StreamIndex> StreamIndex::open(const PoolIndexFolder& folder,
                                               StoredFingerprints& stored,
                                               const StreamOptions& options) {
  // Loads the solver now, not in the middle of a store.
  if (options.rule != EvictionRule::kShares) (void)clp_library();
  std::unique_ptr<StreamIndex> index(new StreamIndex(folder, stored, options));
  index->fill();
  return index;
}

// The table of the runs takes a tenth of its budget if no lookup loads filters.
StreamIndex::StreamIndex(const PoolIndexFolder& folder, StoredFingerprints& stored,
                         const StreamOptions& options)
    : stored_(stored),
      options_(options),
      runs_(ExactPoolIndex::open(folder, stored, options.memory_bytes / 2)),
      cache_(tle_options(options)),
      slots_(1),
      confirmed_(options.memory_bytes / 16) {}

// Each process begins with an empty cache. The newest chunks are the most likely to be shared with
// the next version of a series.
void StreamIndex::fill() {
  const auto known = runs_->covered();
  const std::uint64_t wanted = stream_entries(options_.memory_bytes) / 4;
  const auto skipped = known.size() - std::min(known.size(), wanted);
  std::vector<base::IdRun> newest;
  std::uint64_t left = known.size() - skipped;
  for (auto run = known.runs().rbegin(); left != 0; ++run) {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(run->count, left));
    newest.push_back({run->first.plus(run->count - count), count});
    left -= count;
  }
  for_each_container_of(stored_, base::IdRuns::from(std::move(newest)),
                        [&](const std::vector<PlacedChunk>& chunks) {
                          const Lock lock(mutex_);
                          for (const auto& [fingerprint, id] : chunks) {
                            cache_.use(0, Entry(tag_of(fingerprint), id));
                          }
                        });
}

// ---- Streams. ----

StreamIndex::Stream& StreamIndex::begin_stream(StreamNumber number, SeriesId series) {
  StreamSlot slot = 0;
  for (StreamSlot i = 1; i < slots_.size() && series != SeriesId{}; ++i) {
    if (slots_[i].series == series && cache_.is_waiting(i)) slot = i;
  }
  if (slot != 0) {
    cache_.resume(slot);
  } else {
    slot = cache_.join();
    slots_.resize(std::max<std::size_t>(slots_.size(), slot + 1));
    if (slot != 0) slots_[slot] = {series, {}};
  }
  Stream& stream = streams_[number];
  stream.slot = slot;
  return stream;
}

StreamIndex::Stream& StreamIndex::stream_of(StreamNumber number) {
  const auto known = streams_.find(number);
  return known != streams_.end() ? known->second : begin_stream(number, SeriesId{});
}

void StreamIndex::open_stream(StreamNumber stream, SeriesId series) {
  const Lock lock(mutex_);
  if (!streams_.contains(stream)) begin_stream(stream, series);
}

void StreamIndex::close_stream(StreamNumber stream) {
  {
    const Lock lock(mutex_);
    const auto known = streams_.find(stream);
    if (known == streams_.end()) return;
    slots_[known->second.slot].threshold.note_duplicates(known->second.run_length);
    cache_.quit(known->second.slot);
    streams_.erase(known);
  }
  update_estimates();
}

void StreamIndex::note_reads(SeriesId series, std::span<const std::uint64_t> runs) {
  const Lock lock(mutex_);
  for (Slot& slot : slots_) {
    if (slot.series != series) continue;
    for (const auto chunks : runs) slot.threshold.note_read(chunks);
  }
}

// ---- Lookups. ----

void StreamIndex::lookup(StreamNumber stream, std::span<const Fingerprint> fingerprints,
                         std::span<PoolHit> hits) {
  VARVE_ASSERT(hits.size() == fingerprints.size());
  for (std::size_t i = 0; i < hits.size(); ++i) hits[i] = find(stream, fingerprints[i]);
  drop_short_runs(stream, hits);
  update_estimates();
}

PoolHit StreamIndex::find(StreamNumber number, const Fingerprint& fingerprint) {
  const Tag tag = tag_of(fingerprint);
  Lock lock(mutex_);
  auto known = cache_.find(tag);
  PoolHit hit;
  if (known && !marks_series(*known)) {
    const bool is_confirmed =
        confirmed_.find(tag, [&](ChunkId one) { return one == *known; }).has_value() ||
        confirm(number, fingerprint, *known, lock);
    if (is_confirmed) {
      hit.id = known;
    } else if (cache_.find(tag) == known) {
      cache_.erase(tag);
    }
    known.reset();
  }
  if (!hit.id) hit.id = confirmed_.find(tag, [](ChunkId) { return true; });
  const StreamSlot slot = stream_of(number).slot;
  cache_.arrive(slot, tag, hit.id.has_value());
  if (hit.id) {
    cache_.use(slot, Entry(tag, *hit.id));
  } else if (known) {
    cache_.use(slot, Entry(tag, *known));
    hit.elsewhere = PoolRuns::series_of(*known);
  }
  return hit;
}

bool StreamIndex::confirm(StreamNumber number, const Fingerprint& fingerprint, ChunkId id,
                          Lock& lock) {
  const auto epoch = epoch_;
  LookAhead ahead = stream_of(number).ahead;
  lock.unlock();
  ahead.begin(id);
  bool is_same = false;
  std::vector<Entry> beside;
  const bool read = stored_.around(id, [&](const Fingerprint& its, ChunkId other) {
    if (other == id) is_same = its == fingerprint;
    if (is_pool(other) && ahead.takes(other)) beside.emplace_back(tag_of(its), other);
  });
  lock.lock();
  // A deletion may have freed the chunk meanwhile.
  if (!read || !is_same || cache_.find(tag_of(fingerprint)) != id) return false;
  stream_of(number).ahead = ahead;
  if (epoch == epoch_) {
    for (const Entry& entry : beside) confirmed_.add(entry);
  }
  return true;
}

void StreamIndex::drop_short_runs(StreamNumber number, std::span<PoolHit> hits) {
  const Lock lock(mutex_);
  Stream& stream = stream_of(number);
  RunThreshold& threshold = slots_[stream.slot].threshold;
  std::uint64_t found = 0;
  std::uint64_t dropped = 0;
  std::size_t first = 0;  // Begin of the present run, in this batch.
  const auto end_run = [&](std::size_t end) {
    threshold.note_duplicates(stream.run_length);
    if (options_.applies_threshold && stream.run_length < threshold.value()) {
      dropped += end - first;
      std::fill(hits.begin() + static_cast<std::ptrdiff_t>(first),
                hits.begin() + static_cast<std::ptrdiff_t>(end), PoolHit());
    }
    stream.run_length = 0;
  };
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const auto id = hits[i].id;
    const bool goes_on =
        id && stream.run_length != 0 && (*id == stream.run_last || *id == stream.run_last.plus(1));
    if (!goes_on && stream.run_length != 0) end_run(i);
    if (!goes_on) first = i;
    if (!id) continue;
    ++found;
    ++stream.run_length;
    stream.run_last = *id;
  }
  if (options_.metrics == nullptr) return;
  options_.metrics->lookups.add(hits.size());
  options_.metrics->hits.add(found);
  options_.metrics->short_run_chunks.add(dropped);
  options_.metrics->evictions.add(cache_.evictions() -
                                  std::exchange(evictions_told_, cache_.evictions()));
}

// A linear programme takes milliseconds, so the lock is free meanwhile.
void StreamIndex::update_estimates() {
  std::vector<StreamSample> samples;
  {
    const Lock lock(mutex_);
    if (is_estimating_ || !cache_.wants_estimates()) return;
    is_estimating_ = true;
    samples = cache_.take_samples();
  }
  std::vector<StreamEstimate> estimates;
  for (auto& sample : samples) {
    const auto begin = std::chrono::steady_clock::now();
    estimates.push_back(TleCache::estimate(std::move(sample)));
    if (options_.metrics != nullptr) {
      options_.metrics->estimate.record(std::chrono::steady_clock::now() - begin);
    }
  }
  const Lock lock(mutex_);
  cache_.apply(estimates);
  for (const auto& one : estimates) {
    slots_[one.of.slot].threshold.update(one.of.arrivals, one.of.hits);
  }
  is_estimating_ = false;
}

// ---- New chunks. ----

void StreamIndex::placed(StreamNumber stream, std::span<const PlacedChunk> chunks) {
  {
    const Lock lock(mutex_);
    const StreamSlot slot = stream_of(stream).slot;
    for (const auto& [fingerprint, id] : chunks) {
      VARVE_ASSERT(is_pool(id));
      cache_.use(slot, Entry(tag_of(fingerprint), id));
    }
  }
  runs_->placed(stream, chunks);
}

void StreamIndex::replace(StreamNumber stream, std::span<const PlacedChunk> chunks) {
  placed(stream, chunks);
}

void StreamIndex::stored_in_series(StreamNumber stream, SeriesId series,
                                   std::span<const Fingerprint> fingerprints) {
  const ChunkId marker = PoolRuns::marker_of(series);
  VARVE_ASSERT(series != kPoolSeries && marks_series(marker));
  {
    const Lock lock(mutex_);
    const StreamSlot slot = stream_of(stream).slot;
    for (const auto& fingerprint : fingerprints) {
      const Tag tag = tag_of(fingerprint);
      const auto known = cache_.find(tag);
      if (!known || marks_series(*known)) cache_.use(slot, Entry(tag, marker));
    }
  }
  runs_->stored_in_series(stream, series, fingerprints);
}

void StreamIndex::add_missing(const base::IdRuns& ids) {
  for_each_container_of(stored_, ids, [&](const std::vector<PlacedChunk>& chunks) {
    {
      const Lock lock(mutex_);
      for (const auto& [fingerprint, id] : chunks) {
        const Tag tag = tag_of(fingerprint);
        const auto known = cache_.find(tag);
        if (!known || marks_series(*known) || *known < id) cache_.use(0, Entry(tag, id));
      }
    }
    runs_->placed(kNoStream, chunks);
  });
}

// ---- The rest. ----

void StreamIndex::forget(const base::IdRuns& ids) {
  {
    const Lock lock(mutex_);
    cache_.erase_if([&](ChunkId id) { return ids.contains(id); });
    confirmed_.clear();
    ++epoch_;
  }
  runs_->forget(ids);
}

Result<void> StreamIndex::save(const PoolChunks& chunks) { return runs_->save(chunks); }

ChunkId StreamIndex::saved_until() const { return runs_->saved_until(); }

base::IdRuns StreamIndex::covered() const { return runs_->covered(); }

std::vector<PoolStream> StreamIndex::streams() const {
  const Lock lock(mutex_);
  std::vector<PoolStream> all;
  for (StreamSlot slot = 0; slot < slots_.size(); ++slot) {
    const auto state = cache_.state(slot);
    PoolStream one;
    one.series = slots_[slot].series;
    one.is_open = state.is_open;
    one.entries = state.entries;
    one.locality = static_cast<std::uint64_t>(state.locality);
    one.lookups = state.arrivals;
    one.hits = state.hits;
    one.run_threshold = slots_[slot].threshold.value();
    one.is_admitted = state.is_admitted;
    all.push_back(one);
  }
  return all;
}

std::size_t StreamIndex::size() const { return runs_->size(); }

std::size_t StreamIndex::memory_bytes() const {
  const auto runs = runs_->memory_bytes();
  const Lock lock(mutex_);
  return runs + cache_.memory_bytes() + confirmed_.bytes() + streams_.size() * kBytesPerStream +
         slots_.capacity() * sizeof(Slot);
}

}  // namespace varve::index
