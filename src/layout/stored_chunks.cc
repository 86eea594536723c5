// SPDX-License-Identifier: Apache-2.0
#include "layout/stored_chunks.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "format/container.h"
#include "store/found_damage.h"

namespace varve::layout {

void StoredChunks::add_written(const store::WrittenContainer& written) {
  const std::lock_guard lock(mutex_);
  for (const auto& at : locations_of(written)) {
    new_locations_[at.first.value] =
        LocationRun{at.first, at.count, at.raw_bytes, at.container, at.index};
  }
  new_containers_[written.record.number] = written.record;
  if (written.ids.size() == 1) {
    const auto& run = written.ids.front();
    written_runs_[run.first.value] = {run.count, written.digest};
  }
}

void StoredChunks::forget_written(const std::vector<store::WrittenContainer>& written) {
  const std::lock_guard lock(mutex_);
  for (const auto& one : written) {
    for (const auto& run : one.ids) new_locations_.erase(run.first.value);
    new_containers_.erase(one.record.number);
  }
}

namespace {

// Up to this length, a distant container is requested as a whole instead of the header: the data
// then needs no second request.
constexpr std::uint64_t kSmallDistantBytes = 512U << 10;
// The same limit for random reads. Two or three requests for parts of the container would take
// longer.
constexpr std::uint64_t kWholeAtRandomBytes = 2U << 20;
// Size of the data requested around the estimated place of chunks. The estimate assumes chunks of
// equal length. With 400 content-defined chunks, a chunk in the middle is about kGuessBytes away
// from the estimate.
constexpr std::uint64_t kGuessBytes = 80U << 10;

// Returns the part of an alias's run that is consecutive at the target's place; nullopt if the
// chunk is no alias or the target is not stored.
Result<std::optional<LocationRun>> locate_alias(const meta::Txn& txn, ChunkId id) {
  VARVE_TRY_ASSIGN(const auto alias, catalog::find_alias(txn, id));
  if (!alias) return std::optional<LocationRun>();
  const auto target = alias->stored(id);
  VARVE_TRY_ASSIGN(const auto at, catalog::find_location(txn, kPoolStore, target));
  if (!at) return std::optional<LocationRun>();
  const auto begin = std::max(at->first, alias->run.target);
  const auto end =
      std::min(at->first.value + at->count, alias->run.target.value + alias->run.count);
  LocationRun run;
  run.first = id.plus(begin.value - target.value);
  run.count = static_cast<std::uint32_t>(end - begin.value);
  run.container = at->container;
  run.index = at->index + static_cast<std::uint32_t>(begin.value - at->first.value);
  run.stored = begin;
  return std::optional(run);
}

}  // namespace

Result<LocationRun> StoredChunks::locate(ChunkId id) {
  {
    const std::lock_guard lock(mutex_);
    auto after = new_locations_.upper_bound(id.value);
    if (after != new_locations_.begin()) {
      const auto& run = std::prev(after)->second;
      if (id.value - run.first.value < run.count) return run;
    }
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto found, catalog::find_location(txn, id_, id));
  if (!found && id_ == kPoolStore) {
    VARVE_TRY_ASSIGN(const auto alias, locate_alias(txn, id));
    if (alias) return *alias;
  }
  if (!found) {
    return Error(ErrorCode::kCorrupt, fmt::format("chunk {}.{} is not stored in {}",
                                                  static_cast<std::uint32_t>(id.birth()),
                                                  id.ordinal(), store_.describe()));
  }
  return LocationRun{found->first, found->count, found->raw_bytes, found->container, found->index};
}

Result<std::uint64_t> StoredChunks::digest(const base::IdRuns& ids) {
  std::map<std::uint64_t, WrittenRun> written;
  if (ids.size() != 0) {
    const auto end = ids.runs().back().first.birth();
    const std::lock_guard lock(mutex_);
    const auto first =
        written_runs_.lower_bound(ChunkId::make(ids.runs().front().first.birth(), 0).value);
    const auto last = written_runs_.upper_bound(ChunkId::make(end, UINT32_MAX).value);
    written.insert(first, last);
    written_runs_.erase(first, last);
  }
  std::uint64_t sum = 0;
  std::optional<ContainerNumber> gone;  // The last container without a record.
  for (const auto& run : ids.runs()) {
    for (std::uint32_t i = 0; i < run.count;) {
      const auto id = run.first.plus(i);
      const auto whole = written.find(id.value);
      if (whole != written.end() && whole->second.count <= run.count - i) {
        sum += whole->second.digest;
        i += whole->second.count;
        continue;
      }
      VARVE_TRY_ASSIGN(const auto at, locate(id));
      const auto table = header(at.container);
      if (!table && table.error().code() == ErrorCode::kStale) {
        // The chunk has moved, unless the catalog still locates it there.
        if (gone == at.container) return Error(ErrorCode::kCorrupt, table.error().message());
        gone = at.container;
        continue;
      }
      if (!table) return table.error();
      const auto skip = static_cast<std::uint32_t>(id.value - at.first.value);
      const auto count = std::min(at.count - skip, run.count - i);
      if (std::size_t{at.index} + skip + count > (*table)->chunks.size()) {
        return Error(ErrorCode::kCorrupt, describe(at.container) + ": its table is too short");
      }
      for (std::uint32_t k = 0; k < count; ++k) {
        const auto& chunk = (*table)->chunks[at.index + skip + k];
        sum += format::chunk_digest(id.plus(k), chunk.fingerprint, chunk.raw_bytes);
      }
      i += count;
    }
  }
  return sum;
}

Result<StoredRun> StoredChunks::stored_run(const base::IdRun& run) {
  StoredRun stored{run.first, run.count};
  if (id_ != kPoolStore) return stored;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY(catalog::for_each_alias_of(
      txn, base::IdRuns::from({run}), [&](const catalog::AliasRecord& alias) -> Result<bool> {
        if (alias.run.first > run.first) {
          stored.count = static_cast<std::uint32_t>(alias.run.first.value - run.first.value);
          return false;
        }
        stored.first = alias.stored(run.first);
        stored.count = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(run.count, alias.end() - run.first.value));
        return false;
      }));
  return stored;
}

Result<format::ContainerRecord> StoredChunks::record(ContainerNumber container) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = new_containers_.find(container);
    if (it != new_containers_.end()) return it->second;
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto found, catalog::find_container(txn, id_, container));
  if (!found) {
    return Error(ErrorCode::kStale, fmt::format("container {} is not in the catalog", container));
  }
  return *found;
}

// Arranging and deleting commit first and then free space. If a reader finds no file, or fewer
// bytes than expected, the catalog tells whether freeing is the cause.
Error StoredChunks::explain(const format::ContainerRecord& was, Error error) {
  const auto now = record(was.number);
  if (!now && now.error().code() == ErrorCode::kStale) return now.error();
  return error;
}

Result<std::shared_ptr<const format::ContainerHeader>> StoredChunks::header(
    ContainerNumber container) {
  if (auto cached = headers_.find(container)) return cached;
  VARVE_TRY_ASSIGN(const auto where, record(container));
  auto decoded = reader_.read_header(id_, where);
  if (!decoded) {
    auto error = explain(where, std::move(decoded).error());
    note_damage(container, error);
    return error;
  }
  auto shared = std::make_shared<const format::ContainerHeader>(std::move(*decoded));
  headers_.add(container, shared);
  return shared;
}

Result<void> StoredChunks::read_data(ContainerNumber container, std::uint32_t offset,
                                     std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  auto read = reader_.read_data(where, offset, out);
  if (!read) return explain(where, std::move(read).error());
  return {};
}

Result<store::UnreadParts> StoredChunks::read_around(ContainerNumber container,
                                                     std::uint32_t offset,
                                                     std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  auto unread = reader_.read_around(where, offset, out);
  if (!unread) return explain(where, std::move(unread).error());
  if (const Error* const error = unread->find(0, out.size())) {
    auto explained = explain(where, *error);
    if (explained.code() == ErrorCode::kStale) return explained;
  }
  return unread;
}

Result<std::span<const std::byte>> StoredChunks::read_once(ContainerNumber container,
                                                           std::uint32_t offset, std::size_t bytes,
                                                           std::span<std::byte> room) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  auto read = reader_.read_once(where, offset, bytes, room);
  if (!read) return explain(where, std::move(read).error());
  return read;
}

void StoredChunks::read_many(const std::vector<DataRead>& reads, const DataCompletion& done) {
  if (!store_.answers_later()) return ChunkSource::read_many(reads, done);
  std::vector<store::ContainerRead> found;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    auto where = record(reads[i].container);
    if (!where) {
      done(i, std::move(where).error());
      continue;
    }
    found.push_back(
        {std::move(*where), reads[i].offset, reads[i].bytes, reads[i].room, reads[i].lent});
    positions.push_back(i);
  }
  std::vector<format::ContainerRecord> places;
  for (const auto& one : found) places.push_back(one.record);
  reader_.read_many(found, [this, done, positions = std::move(positions),
                            places = std::move(places)](std::size_t at, auto got) {
    if (!got) got = explain(places[at], std::move(got).error());
    done(positions[at], std::move(got));
  });
}

void StoredChunks::will_read_header(ContainerNumber container) {
  const auto where = record(container);
  if (!where) return;
  if (!store_.answers_later()) {
    reader_.will_read_header(*where);
  } else if (where->end() - where->offset <= kSmallDistantBytes) {
    reader_.will_read_all(*where);
  } else if (headers_.begin_read(container)) {
    reader_.read_header_later(id_, *where, [this, container](auto header) {
      // header() reads a bad header again and reports the error.
      headers_.end_read(
          container,
          header ? std::make_shared<const format::ContainerHeader>(std::move(*header)) : nullptr);
    });
  }
}

// The header is read on demand, without a separate request.
void StoredChunks::will_read_all(ContainerNumber container) {
  if (!store_.answers_later()) return will_read_header(container);
  if (const auto where = record(container)) reader_.will_read_all(*where);
}

void StoredChunks::will_read_chunks(ContainerNumber container, std::uint32_t index,
                                    std::uint32_t count) {
  if (!store_.answers_later() || headers_.find(container)) return;
  const auto where = record(container);
  if (!where) return;
  if (where->end() - where->offset <= kWholeAtRandomBytes) return reader_.will_read_all(*where);
  reader_.will_read_header(*where);
  // The distance from the guess to the place would reveal the compression of the preceding chunks
  // to the store.
  if (where->sealed) return;
  const auto at = [&](std::uint64_t chunk) {
    return std::min(chunk, std::uint64_t{where->chunks}) * where->data_bytes /
           std::max(where->chunks, 1U);
  };
  const auto first = at(index);
  const auto end =
      std::min<std::uint64_t>(at(std::uint64_t{index} + count) + kGuessBytes, where->data_bytes);
  const auto begin = first - std::min(first, kGuessBytes);
  reader_.will_read_data(*where, static_cast<std::uint32_t>(begin),
                         static_cast<std::size_t>(end - begin));
}

void StoredChunks::will_read_data(ContainerNumber container, std::uint32_t offset,
                                  std::size_t bytes) {
  if (const auto where = record(container)) reader_.will_read_data(*where, offset, bytes);
}

bool StoredChunks::drop(ContainerNumber container) {
  const auto where = record(container);
  return where && reader_.drop(*where);
}

void StoredChunks::note_damage(const format::ContainerHeader& header, std::uint32_t frame,
                               const Error& error) {
  if (damage_ == nullptr || !base::is_damage(error)) return;
  const auto& entry = header.frames[frame];
  std::vector<base::IdRun> chunks;
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    base::append_run(chunks, {header.chunks[entry.first_chunk + i].id, 1});
  }
  damage_->note(id_, base::IdRuns::from(std::move(chunks)));
}

void StoredChunks::log_damage(ContainerNumber container, const Error& error) {
  base::log(base::LogLevel::kError, "arranging: " + describe(container) + ": " + error.message() +
                                        "; its damaged chunks stay where they are");
}

void StoredChunks::note_damage(ContainerNumber container, const Error& error) {
  if (damage_ == nullptr || !base::is_damage(error) || !damage_->is_new(id_, container)) return;
  const auto txn = meta::ReadTxn::begin(catalog_);
  if (!txn) return;
  std::vector<base::IdRun> chunks;
  const auto found = catalog::for_each_location(
      *txn, id_, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
        if (at.container == container) chunks.push_back({at.first, at.count});
        return true;
      });
  if (found) damage_->note(id_, base::IdRuns::from(std::move(chunks)));
}

Result<std::uint64_t> StoredChunks::place_of(ContainerNumber container) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  const std::uint64_t block = where.offset / format::kContainerAlignment;
  return (std::uint64_t{static_cast<std::uint32_t>(where.segment)} << 32) |
         std::min<std::uint64_t>(block, UINT32_MAX);
}

std::string StoredChunks::describe(ContainerNumber container) {
  const auto where = record(container);
  return where ? reader_.describe(*where) : fmt::format("container {}", container);
}

Result<void> StoredChunks::free(const std::vector<FileCut>& cuts) {
  for (const auto& cut : cuts) reader_.forget(cut.segment);
  return free_files(store_, cuts);
}

}  // namespace varve::layout
