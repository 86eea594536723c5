// SPDX-License-Identifier: Apache-2.0
#include "layout/category_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/location_table.h"
#include "layout/store_recovery.h"
#include "meta/schema.h"

namespace varve::layout {

CategoryLayout::Exclusive::Exclusive(CategoryLayout& layout, For what)
    : lock_(layout.arrange_mutex_, std::defer_lock) {
  if (what == For::kArranging) {
    lock_.lock();
    return;
  }
  ++layout.deletions_waiting_;
  lock_.lock();
  --layout.deletions_waiting_;
}

CategoryLayout::CategoryLayout(const meta::Env& catalog, store::SegmentStore& store,
                               const format::FrameCodec& codec, base::ThreadPool* compressors,
                               CategoryLayoutOptions options)
    : catalog_(catalog),
      store_(store),
      codec_(codec),
      compressors_(compressors),
      options_(std::move(options)),
      reader_(store, options_.open_files) {}

Result<std::unique_ptr<CategoryLayout>> CategoryLayout::open(const meta::Env& catalog,
                                                             store::SegmentStore& store,
                                                             const format::FrameCodec& codec,
                                                             base::ThreadPool* compressors,
                                                             const CategoryLayoutOptions& options) {
  std::unique_ptr<CategoryLayout> layout(
      new CategoryLayout(catalog, store, codec, compressors, options));
  if (options.read_only) return layout;
  VARVE_TRY(recover_store(catalog, options.store, store, layout->numbers_));
  return layout;
}

void CategoryLayout::start_writer() {
  store::ContainerWriterOptions writer;
  writer.store = options_.store;
  writer.numbers = &numbers_;
  writer.admitted = true;
  writer_ = std::make_unique<store::ContainerWriter>(
      store_, codec_, *compressors_, writer,
      [this](store::WrittenContainer written) { on_written(std::move(written)); });
}

void CategoryLayout::end_writer() {
  if (!writer_) return;
  stored_by_ended_writers_ += writer_->stored_bytes();
  writer_.reset();
}

Result<void> CategoryLayout::begin_version(VersionNumber number) {
  {
    const std::lock_guard alone(writer_mutex_);
    // Every version begins its own files. They are deleted with it unless other versions use them
    // too.
    if (writer_ && writer_version_ != number) {
      VARVE_TRY(writer_->flush());
      end_writer();
    }
    writer_version_ = number;
  }
  std::uint32_t next = 0;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  const auto after =
      ChunkId::make(static_cast<VersionNumber>(static_cast<std::uint32_t>(number) + 1), 0);
  VARVE_TRY_ASSIGN(const auto last, catalog::find_last_location_before(txn, options_.store, after));
  if (last && last->first.birth() == number) next = last->first.ordinal() + last->count;
  const std::lock_guard lock(mutex_);
  // If an earlier attempt to open the version failed, chunks that it placed may still be on their
  // way: their ids must not be used again.
  next_ordinal_ = number == number_ ? std::max(next, next_ordinal_) : next;
  number_ = number;
  placed_raw_ = 0;
  stored_by_ended_writers_ = 0;
  return {};
}

Result<ChunkId> CategoryLayout::place(const Fingerprint& fingerprint,
                                      std::span<const std::byte> raw) {
  std::shared_lock use(writer_mutex_);
  if (writer_version_ == VersionNumber{}) {
    return Error(ErrorCode::kInvalid, "no version is begun");
  }
  if (!writer_) {
    // The writer has a thread and large buffers, so it starts only when a version has a chunk to
    // write.
    use.unlock();
    {
      const std::lock_guard alone(writer_mutex_);
      if (!writer_ && writer_version_ != VersionNumber{}) start_writer();
    }
    use.lock();
    if (!writer_) return Error(ErrorCode::kInvalid, "the version was dropped");
  }
  ChunkId id;
  {
    const std::lock_guard lock(mutex_);
    id = ChunkId::make(number_, next_ordinal_);
    if (next_ordinal_ == 0xffffffffU) {
      return Error(ErrorCode::kTooLarge, "a version can hold 4,294,967,294 new chunks at most");
    }
  }
  // Only the ingest pipeline's committing thread calls place(), one chunk at a time, so no other
  // thread takes the ordinal in between. on_written() needs mutex_ free while append() waits.
  const auto bytes = static_cast<std::int64_t>(raw.size());
  unwritten_ += bytes;
  if (auto taken = writer_->append(id, fingerprint, raw); !taken) {
    unwritten_ -= bytes;
    return std::move(taken).error();
  }
  const std::lock_guard lock(mutex_);
  ++next_ordinal_;
  placed_raw_ += raw.size();
  return id;
}

std::optional<std::vector<std::byte>> CategoryLayout::read_unwritten(ChunkId id) {
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return std::nullopt;
  return writer_->read_unwritten(id);
}

Result<void> CategoryLayout::flush() {
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return {};
  return writer_->flush();
}

void CategoryLayout::on_written(store::WrittenContainer written) {
  unwritten_ -= static_cast<std::int64_t>(written.record.raw_bytes);
  if (options_.metrics != nullptr) {
    options_.metrics->containers.add();
    options_.metrics->container_bytes.add(written.record.end() - written.record.offset);
  }
  const std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < written.ids.size(); ++i) {
    const auto& run = written.ids[i];
    new_locations_[run.first.value] =
        LocationRun{run.first, run.count, written.run_raw_bytes[i], written.record.number, index};
    index += run.count;
  }
  new_containers_[written.record.number] = written.record;
}

Result<void> CategoryLayout::sync() {
  const std::lock_guard one(sync_mutex_);
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return {};
  VARVE_TRY(writer_->flush());
  std::map<std::uint64_t, LocationRun> locations;
  std::unordered_map<ContainerNumber, format::ContainerRecord> containers;
  {
    const std::lock_guard lock(mutex_);
    locations = new_locations_;
    containers = new_containers_;
  }
  if (containers.empty()) return {};
  VARVE_TRY(writer_->sync());  // O1: the data before the records that locate it.
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  SegmentLedger ledger(txn, options_.store);
  for (const auto& [number, record] : containers) {
    VARVE_TRY(ledger.add(record, catalog::SegmentRole::kNew, record.birth));
  }
  for (const auto& [first, run] : locations) {
    ledger.put({run.first, run.count, run.raw_bytes, run.container, run.index});
  }
  VARVE_TRY(ledger.apply(txn));
  VARVE_TRY(catalog::raise_counters(txn, options_.store, counters()));
  VARVE_TRY(txn.commit());
  const std::lock_guard lock(mutex_);
  for (const auto& entry : locations) new_locations_.erase(entry.first);
  for (const auto& entry : containers) new_containers_.erase(entry.first);
  return {};
}

Result<void> CategoryLayout::on_seal(VersionNumber /*number*/, const base::IdRuns& /*live*/) {
  VARVE_TRY(sync());
  // The writer's thread, buffers and file end here: a series without an open version needs none. If
  // the seal fails after this, the next chunk starts another writer.
  const std::lock_guard alone(writer_mutex_);
  end_writer();
  return {};
}

// An abandoned version stored its chunks in its own files; nothing else refers to them. The records
// are deleted first, then the space is freed (O7).
Result<void> CategoryLayout::on_delete(VersionNumber number) {
  const Exclusive exclusive(*this, Exclusive::For::kDeleting);
  const std::lock_guard one(sync_mutex_);
  const std::lock_guard alone(writer_mutex_);
  writer_.reset();
  writer_version_ = VersionNumber{};
  unwritten_ = 0;
  std::vector<FileCut> unsynced;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : new_containers_) unsynced.push_back({entry.second.segment, 0, 0});
    new_locations_.clear();
    new_containers_.clear();
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  SegmentLedger ledger(txn, options_.store);
  const auto remove = [&](const catalog::LocationRecord& record) -> Result<bool> {
    if (record.first.birth() != number) return false;
    auto removed = ledger.remove(record, {});
    if (!removed) return std::move(removed).error();
    return true;
  };
  VARVE_TRY(catalog::for_each_location(txn, options_.store, ChunkId::make(number, 0), remove));
  VARVE_TRY(ledger.finish());
  VARVE_TRY(ledger.apply(txn));
  VARVE_TRY(txn.commit());
  VARVE_TRY(free(ledger.cuts()));
  return free(unsynced);
}

catalog::CounterRecord CategoryLayout::counters() const {
  return {numbers_.next_container(), numbers_.next_segment()};
}

Result<void> CategoryLayout::free(const std::vector<FileCut>& cuts) {
  for (const auto& cut : cuts) reader_.forget(cut.segment);
  return free_files(store_, cuts);
}

PlacedBytes CategoryLayout::placed() const {
  const std::shared_lock use(writer_mutex_);
  const std::lock_guard lock(mutex_);
  return {placed_raw_, stored_by_ended_writers_ + (writer_ ? writer_->stored_bytes() : 0)};
}

Result<LocationRun> CategoryLayout::locate(ChunkId id) {
  {
    const std::lock_guard lock(mutex_);
    auto after = new_locations_.upper_bound(id.value);
    if (after != new_locations_.begin()) {
      const auto& run = std::prev(after)->second;
      if (id.value - run.first.value < run.count) return run;
    }
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto found, catalog::find_location(txn, options_.store, id));
  if (!found) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("chunk {}.{} of series {} is not stored",
                             static_cast<std::uint32_t>(id.birth()), id.ordinal(),
                             static_cast<std::uint32_t>(options_.series)));
  }
  return LocationRun{found->first, found->count, found->raw_bytes, found->container, found->index};
}

Result<format::ContainerRecord> CategoryLayout::record(ContainerNumber container) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = new_containers_.find(container);
    if (it != new_containers_.end()) return it->second;
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto found, catalog::find_container(txn, options_.store, container));
  if (!found) {
    return Error(ErrorCode::kStale, fmt::format("container {} is not in the catalog", container));
  }
  return *found;
}

// Arranging and deleting commit first and then free space. A reader that finds no file, or fewer
// bytes than it expected, sees in the catalog whether that is the cause.
Error CategoryLayout::explain(const format::ContainerRecord& was, Error error) {
  const auto now = record(was.number);
  if (!now && now.error().code() == ErrorCode::kStale) return now.error();
  return error;
}

Result<std::shared_ptr<const format::ContainerHeader>> CategoryLayout::header(
    ContainerNumber container) {
  if (auto cached = headers_.find(container)) return cached;
  VARVE_TRY_ASSIGN(const auto where, record(container));
  auto decoded = reader_.read_header(options_.store, where);
  if (!decoded) return explain(where, std::move(decoded).error());
  auto shared = std::make_shared<const format::ContainerHeader>(std::move(*decoded));
  headers_.add(container, shared);
  return shared;
}

Result<void> CategoryLayout::read_data(ContainerNumber container, std::uint32_t offset,
                                       std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  auto read = reader_.read_data(where, offset, out);
  if (!read) return explain(where, std::move(read).error());
  return {};
}

Result<std::span<const std::byte>> CategoryLayout::read_once(ContainerNumber container,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  auto read = reader_.read_once(where, offset, bytes, room);
  if (!read) return explain(where, std::move(read).error());
  return read;
}

void CategoryLayout::read_many(const std::vector<DataRead>& reads, const DataCompletion& done) {
  if (!store_.answers_later()) return ChunkSource::read_many(reads, done);
  std::vector<store::ContainerRead> found;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    auto where = record(reads[i].container);
    if (!where) {
      done(i, std::move(where).error());
      continue;
    }
    found.push_back({std::move(*where), reads[i].offset, reads[i].bytes, reads[i].room});
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

void CategoryLayout::will_read_header(ContainerNumber container) {
  const auto where = record(container);
  if (!where) return;
  if (!store_.answers_later()) {
    reader_.will_read_header(*where);
  } else if (headers_.begin_read(container)) {
    reader_.read_header_later(options_.store, *where, [this, container](auto header) {
      // header() reads a bad header again and reports the error.
      headers_.end_read(
          container,
          header ? std::make_shared<const format::ContainerHeader>(std::move(*header)) : nullptr);
    });
  }
}

void CategoryLayout::will_read_data(ContainerNumber container, std::uint32_t offset,
                                    std::size_t bytes) {
  if (const auto where = record(container)) reader_.will_read_data(*where, offset, bytes);
}

Result<std::uint64_t> CategoryLayout::place_of(ContainerNumber container) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  const std::uint64_t block = where.offset / format::kContainerAlignment;
  return (std::uint64_t{static_cast<std::uint32_t>(where.segment)} << 32) |
         std::min<std::uint64_t>(block, UINT32_MAX);
}

std::string CategoryLayout::describe(ContainerNumber container) {
  const auto where = record(container);
  return where ? reader_.describe(*where) : fmt::format("container {}", container);
}

}  // namespace varve::layout
