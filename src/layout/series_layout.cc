// SPDX-License-Identifier: Apache-2.0
#include "layout/series_layout.h"

#include <utility>

namespace varve::layout {

namespace {
// Separates the pool's places from the series' places: a bit that is 0 in all segment numbers.
constexpr std::uint64_t kPoolPlace = std::uint64_t{1} << 62;
}  // namespace

std::shared_ptr<ChunkStream> SeriesLayout::stream() const {
  const std::lock_guard lock(mutex_);
  return stream_;
}

Result<std::shared_ptr<ChunkStream>> SeriesLayout::start_stream() {
  if (auto present = stream()) return present;
  VARVE_TRY_ASSIGN(auto* const pool, pool_());
  const std::lock_guard lock(mutex_);
  if (stream_) return stream_;
  if (version_ == VersionNumber{}) return Error(ErrorCode::kInvalid, "no version is begun");
  VARVE_TRY_ASSIGN(stream_, pool->start_stream({own_.options().series, version_}));
  return stream_;
}

Result<void> SeriesLayout::begin_version(VersionNumber number) {
  {
    const std::lock_guard lock(mutex_);
    if (version_ != number) stream_.reset();
    version_ = number;
  }
  return own_.begin_version(number);
}

Result<ChunkId> SeriesLayout::place_shared(const Fingerprint& fingerprint,
                                           std::span<const std::byte> raw) {
  VARVE_TRY_ASSIGN(const auto to, start_stream());
  return to->place(fingerprint, raw);
}

std::optional<std::vector<std::byte>> SeriesLayout::read_unwritten(ChunkId id) {
  if (!is_pool(id)) return own_.read_unwritten(id);
  const auto from = stream();
  return from && from->birth() == id.birth() ? from->read_unwritten(id) : std::nullopt;
}

Result<void> SeriesLayout::flush() {
  if (const auto shared = stream()) VARVE_TRY(shared->flush());
  return own_.flush();
}

Result<void> SeriesLayout::sync() {
  if (const auto shared = stream()) VARVE_TRY(sync_stream(*shared));
  return own_.sync();
}

Result<void> SeriesLayout::on_seal(VersionNumber number, const base::IdRuns& live) {
  if (const auto shared = stream()) {
    VARVE_TRY(sync_stream(*shared));
    shared->end();
    const std::lock_guard lock(mutex_);
    stream_.reset();  // The birth is complete.
  }
  return own_.on_seal(number, live);
}

Result<void> SeriesLayout::on_delete(VersionNumber number) {
  std::shared_ptr<ChunkStream> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (version_ == number) {
      dropped = std::exchange(stream_, nullptr);
      version_ = VersionNumber{};
    }
  }
  std::vector<FileCut> unsynced;
  if (dropped) unsynced = dropped->drop();
  VARVE_TRY(own_.on_delete(number));
  if (unsynced.empty()) return {};
  VARVE_TRY_ASSIGN(auto* const pool, pool_());
  return free_files(pool->segments(), unsynced);
}

PlacedBytes SeriesLayout::placed() const {
  PlacedBytes placed = own_.placed();
  if (const auto shared = stream()) {
    const auto more = shared->placed();
    placed.raw += more.raw;
    placed.stored += more.stored;
  }
  return placed;
}

std::uint64_t SeriesLayout::unwritten_bytes() const {
  const auto shared = stream();
  return own_.unwritten_bytes() + (shared ? shared->unwritten_bytes() : 0);
}

Result<LocationRun> SeriesLayout::locate(ChunkId id) {
  if (!is_pool(id)) return own_.locate(id);
  VARVE_TRY_ASSIGN(auto* const pool, pool_());
  return pool->chunks().locate(id);
}

Result<StoredRun> SeriesLayout::stored_run(const base::IdRun& run) {
  if (!is_pool(run.first)) return own_.stored_run(run);
  VARVE_TRY_ASSIGN(auto* const pool, pool_());
  return pool->chunks().stored_run(run);
}

Result<std::uint64_t> SeriesLayout::digest(const base::IdRuns& ids) {
  if (ids.size() == 0 || !is_pool(ids.runs().front().first)) return own_.digest(ids);
  VARVE_TRY_ASSIGN(auto* const pool, pool_());
  return pool->chunks().digest(ids);
}

Result<ChunkSource*> SeriesLayout::source_of(ContainerNumber container) {
  if (!is_pool(container)) return &own_;
  VARVE_TRY_ASSIGN(auto* const pool, pool_());
  return &pool->chunks();
}

Result<std::shared_ptr<const format::ContainerHeader>> SeriesLayout::header(
    ContainerNumber container) {
  VARVE_TRY_ASSIGN(auto* const source, source_of(container));
  return source->header(container);
}

Result<void> SeriesLayout::read_data(ContainerNumber container, std::uint32_t offset,
                                     std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(auto* const source, source_of(container));
  return source->read_data(container, offset, out);
}

Result<store::UnreadParts> SeriesLayout::read_around(ContainerNumber container,
                                                     std::uint32_t offset,
                                                     std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(auto* const source, source_of(container));
  return source->read_around(container, offset, out);
}

Result<std::span<const std::byte>> SeriesLayout::read_once(ContainerNumber container,
                                                           std::uint32_t offset, std::size_t bytes,
                                                           std::span<std::byte> room) {
  VARVE_TRY_ASSIGN(auto* const source, source_of(container));
  return source->read_once(container, offset, bytes, room);
}

void SeriesLayout::read_many(const std::vector<DataRead>& reads, const DataCompletion& done) {
  std::vector<DataRead> parts[2];
  std::vector<std::size_t> positions[2];
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const int to = is_pool(reads[i].container) ? 1 : 0;
    parts[to].push_back(reads[i]);
    positions[to].push_back(i);
  }
  for (int which = 0; which < 2; ++which) {
    if (parts[which].empty()) continue;
    const auto source = source_of(parts[which].front().container);
    if (!source) {
      for (const auto position : positions[which]) done(position, source.error());
      continue;
    }
    (*source)->read_many(parts[which],
                         [done, at = std::move(positions[which])](std::size_t position, auto got) {
                           done(at[position], std::move(got));
                         });
  }
}

bool SeriesLayout::drop(ContainerNumber container) {
  const auto source = source_of(container);
  return source && (*source)->drop(container);
}

void SeriesLayout::note_damage(const format::ContainerHeader& header, std::uint32_t frame,
                               const Error& error) {
  if (const auto source = source_of(header.number)) (*source)->note_damage(header, frame, error);
}

void SeriesLayout::will_read_header(ContainerNumber container) {
  if (const auto source = source_of(container)) (*source)->will_read_header(container);
}

void SeriesLayout::will_read_all(ContainerNumber container) {
  if (const auto source = source_of(container)) (*source)->will_read_all(container);
}

void SeriesLayout::will_read_chunks(ContainerNumber container, std::uint32_t index,
                                    std::uint32_t count) {
  if (const auto source = source_of(container)) {
    (*source)->will_read_chunks(container, index, count);
  }
}

void SeriesLayout::will_read_data(ContainerNumber container, std::uint32_t offset,
                                  std::size_t bytes) {
  if (const auto source = source_of(container)) (*source)->will_read_data(container, offset, bytes);
}

Result<std::uint64_t> SeriesLayout::place_of(ContainerNumber container) {
  VARVE_TRY_ASSIGN(auto* const source, source_of(container));
  VARVE_TRY_ASSIGN(const auto place, source->place_of(container));
  return is_pool(container) ? place | kPoolPlace : place;
}

void SeriesLayout::set_on_synced(OnSynced on_synced) {
  const std::lock_guard lock(mutex_);
  on_synced_ = std::move(on_synced);
}

Result<void> SeriesLayout::sync_stream(ChunkStream& stream) {
  VARVE_TRY(stream.sync());
  OnSynced on_synced;
  {
    const std::lock_guard lock(mutex_);
    on_synced = on_synced_;
  }
  if (on_synced) on_synced(stream.birth(), stream.synced_chunks());
  return {};
}

}  // namespace varve::layout
