// SPDX-License-Identifier: Apache-2.0
#include "remote/cell_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "remote/cell_state.h"

namespace varve::remote {

std::set<std::uint64_t> CellReader::State::read_cache(const RangeToRead& what,
                                                      const std::set<std::uint64_t>& wanted,
                                                      std::unique_ptr<std::byte[]>& room) {
  std::set<std::uint64_t> missing;
  for (auto at = wanted.begin(); at != wanted.end();) {
    const auto block = *at / kCellsPerBlock;
    CellSet set = 0;
    const auto begin = at;
    for (; at != wanted.end() && *at / kCellsPerBlock == block; ++at) {
      set = static_cast<CellSet>(set | cell_bit(*at));
    }
    if (!room) room = std::make_unique_for_overwrite<std::byte[]>(kCacheBlockBytes);
    const std::span bytes(room.get(), block_bytes(what.range.object_bytes, block));
    const auto found = cache.read(what.range.object, block, set, bytes);
    for (auto cell = begin; cell != at; ++cell) {
      if ((found & cell_bit(*cell)) == 0) {
        missing.insert(*cell);
        continue;
      }
      const auto offset = *cell % kCellsPerBlock * kCacheCellBytes;
      const auto length = std::min<std::size_t>(kCacheCellBytes, bytes.size() - offset);
      copy_common(what, *cell * kCacheCellBytes,
                  bytes.subspan(static_cast<std::size_t>(offset), length));
    }
  }
  return missing;
}

CellReader::CellReader(bucket::Bucket& bucket, io::FileSystem& files, std::string cache_folder,
                       std::uint64_t cache_bytes_max, CellReaderLimits limits)
    : state_(std::make_shared<State>(bucket, files, std::move(cache_folder), cache_bytes_max,
                                     limits)) {}

CellReader::~CellReader() {
  std::unique_ptr<base::ThreadPool> workers, writer;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_closed = true;
    state_->needed.clear();
    state_->ahead.clear();
    workers = std::move(state_->workers);
    writer = std::move(state_->writer);
  }
  workers.reset();  // The workers add work for the writer.
  writer.reset();
}

void CellReader::read(std::vector<RangeToRead> reads, Done done) {
  read(std::move(reads), std::move(done), false);
}

void CellReader::read_at_random(std::vector<RangeToRead> reads, Done done) {
  read(std::move(reads), std::move(done), true);
}

void CellReader::read(std::vector<RangeToRead> reads, Done done, bool widens) {
  const auto state = state_;  // The reader may be destroyed after the last completion.
  const auto batch = std::make_shared<Batch>();
  batch->done = std::move(done);
  batch->reads.resize(reads.size());
  std::vector<std::set<std::uint64_t>> missing(reads.size());
  std::vector<std::vector<State::FlightPointer>> received(reads.size());
  const auto copy = [&](std::size_t at) {
    for (const auto& flight : std::exchange(received[at], {})) {
      copy_common(batch->reads[at].what, flight->offset(), flight->received());
    }
  };
  {
    State::Lock lock(state_->mutex);
    state_->make_threads();
    for (std::size_t i = 0; i < reads.size(); ++i) {
      batch->reads[i].what = std::move(reads[i]);
      const auto& range = batch->reads[i].what.range;
      std::set<std::uint64_t> wanted;
      for (auto cell = first_cell(range); cell < end_cell(range); ++cell) wanted.insert(cell);
      missing[i] = state_->join(batch, i, wanted, received[i]);
    }
    state_->start(lock);  // A waiting prefetch request may be needed now.
  }
  std::unique_ptr<std::byte[]> room;
  struct Request {
    std::uint64_t object_bytes = 0;
    std::set<std::uint64_t> cells{};
    std::set<std::uint64_t> gaps{};
  };
  std::map<std::string, Request> requests;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    copy(i);
    const auto& what = batch->reads[i].what;
    if (!missing[i].empty()) missing[i] = state_->read_cache(what, missing[i], room);
    if (missing[i].empty()) continue;
    auto& request = requests[what.range.object];
    request.object_bytes = what.range.object_bytes;
    request.cells.insert(missing[i].begin(), missing[i].end());
  }
  for (auto& [object, request] : requests) {
    if (widens) request.gaps = state_->widen(object, request.object_bytes, request.cells);
  }
  if (!requests.empty()) {
    State::Lock lock(state_->mutex);
    for (const auto& [object, request] : requests) {
      state_->add_flights(object, request.object_bytes, request.cells, false, request.gaps);
    }
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (!missing[i].empty()) state_->join(batch, i, missing[i], received[i]);
    }
    state_->start(lock);
  }
  for (std::size_t i = 0; i < missing.size(); ++i) {
    copy(i);
    batch->end(i, std::nullopt);
  }
  State::Lock lock(state->mutex);
  if (state->reads_once) state->trim();  // The next requests use the freed memory.
}

void CellReader::will_read_once() {
  const State::Lock lock(state_->mutex);
  state_->reads_once = true;
}

void CellReader::drop_all() { state_->drop_all(); }

void CellReader::drop(const ObjectRange& range) { state_->drop(range); }

std::uint64_t CellReader::shrink_cache(std::uint64_t bytes) { return state_->cache.shrink(bytes); }

void CellReader::end_reads() {
  State::Lock lock(state_->mutex);
  state_->has_ended = true;
  if (state_->workers) state_->start(lock);  // Waiting requests fail now.
}

void CellReader::will_read(const ObjectRange& range) {
  if (range.bytes == 0) return;
  std::set<std::uint64_t> missing;
  for (auto cell = first_cell(range); cell < end_cell(range);) {
    const auto block = cell / kCellsPerBlock;
    const auto present =
        state_->cache.present(range.object, block, block_bytes(range.object_bytes, block));
    for (; cell < end_cell(range) && cell / kCellsPerBlock == block; ++cell) {
      if ((present & cell_bit(cell)) == 0) missing.insert(cell);
    }
  }
  if (missing.empty()) return;
  State::Lock lock(state_->mutex);
  if (state_->ahead.size() >= state_->limits.queue_max) return;
  state_->make_threads();
  state_->add_flights(range.object, range.object_bytes, missing, true);
  state_->start(lock);
}

}  // namespace varve::remote
