// SPDX-License-Identifier: Apache-2.0
#include "layout/chunk_stream.h"

#include <algorithm>
#include <utility>

#include "catalog/birth_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"

namespace varve::layout {

void ChunkStream::start_writer() {
  store::ContainerWriterOptions options;
  options.store = parts_.chunks.id();
  options.numbers = &parts_.numbers;
  options.admitted = true;
  options.file_per_container = parts_.file_per_container;
  {
    const std::lock_guard lock(mutex_);
    options.marks = catalog::marks_of(births_);
  }
  writer_ = std::make_unique<store::ContainerWriter>(
      parts_.store, parts_.codec, *parts_.compressors, options,
      [this](store::WrittenContainer written) { on_written(std::move(written)); });
}

void ChunkStream::end_writer() {
  if (!writer_) return;
  stored_by_ended_writers_ += writer_->stored_bytes();
  writer_.reset();
}

Result<std::optional<format::Birth>> ChunkStream::find_birth(const meta::Txn& txn,
                                                             VersionNumber birth) const {
  VARVE_TRY_ASSIGN(auto record, catalog::find_birth(txn, parts_.chunks.id(), birth));
  if (record) return record;
  // The catalog has the record only after the first sync.
  const std::lock_guard lock(mutex_);
  const auto known = births_.find(birth);
  return known == births_.end() ? record : std::optional(known->second);
}

Result<void> ChunkStream::begin(VersionNumber birth, SeriesId series, VersionNumber version) {
  {
    const std::lock_guard alone(writer_mutex_);
    // Every version begins its own files. A deletion of the version deletes the files unless
    // another version uses them too.
    if (writer_ && writer_birth_ != birth) {
      VARVE_TRY(writer_->flush());
      end_writer();
    }
    writer_birth_ = birth;
  }
  std::uint32_t next = 0;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(parts_.catalog));
  const auto after =
      ChunkId::make(static_cast<VersionNumber>(static_cast<std::uint32_t>(birth) + 1), 0);
  VARVE_TRY_ASSIGN(const auto last,
                   catalog::find_last_location_before(txn, parts_.chunks.id(), after));
  if (last && last->first.birth() == birth) {
    const auto end = std::uint64_t{last->first.ordinal()} + last->count;
    next = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, UINT32_MAX));
  }
  VARVE_TRY_ASSIGN(auto record, find_birth(txn, birth));
  // A birth begun by an earlier Varve stays without a mark: all containers of a birth have the same
  // mark.
  if (!record && next == 0) {
    VARVE_TRY_ASSIGN(record, catalog::new_birth(series, version));
  }
  const std::lock_guard lock(mutex_);
  // If an earlier attempt to open the version failed, chunks placed in that attempt may still be in
  // flight: their ids must not be used again.
  next_ordinal_ = birth == birth_ ? std::max(next, next_ordinal_) : next;
  birth_ = birth;
  if (record) births_.insert_or_assign(birth, *record);
  synced_ = next_ordinal_;
  placed_raw_ = 0;
  stored_by_ended_writers_ = 0;
  return {};
}

void ChunkStream::skip_to(std::uint32_t next) {
  const std::lock_guard lock(mutex_);
  if (next <= next_ordinal_) return;
  next_ordinal_ = next;
  synced_ = next;
}

Result<ChunkId> ChunkStream::place(const Fingerprint& fingerprint, std::span<const std::byte> raw) {
  std::shared_lock use(writer_mutex_);
  if (writer_birth_ == VersionNumber{}) return Error(ErrorCode::kInvalid, "no version is begun");
  if (!writer_) {
    // The writer has a thread and large buffers, so the writer starts only when a version has a
    // chunk to write.
    use.unlock();
    {
      const std::lock_guard alone(writer_mutex_);
      if (!writer_ && writer_birth_ != VersionNumber{}) start_writer();
    }
    use.lock();
    if (!writer_) return Error(ErrorCode::kInvalid, "the version was dropped");
  }
  ChunkId id;
  {
    const std::lock_guard lock(mutex_);
    id = ChunkId::make(birth_, next_ordinal_);
    if (next_ordinal_ == 0xffffffffU) {
      return Error(ErrorCode::kTooLarge, "a version can hold 4,294,967,294 new chunks at most");
    }
  }
  // No concurrent thread takes the ordinal in between. on_written() needs mutex_ free while
  // append() waits.
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

std::optional<std::vector<std::byte>> ChunkStream::read_unwritten(ChunkId id) {
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return std::nullopt;
  return writer_->read_unwritten(id);
}

Result<void> ChunkStream::flush() {
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return {};
  return writer_->flush();
}

void ChunkStream::on_written(store::WrittenContainer written) {
  unwritten_ -= static_cast<std::int64_t>(written.record.raw_bytes);
  if (parts_.metrics != nullptr) {
    parts_.metrics->containers.add();
    parts_.metrics->container_bytes.add(written.record.end() - written.record.offset);
  }
  if (parts_.on_container) parts_.on_container(written.record.number);
  parts_.chunks.add_written(written);
  const std::lock_guard lock(mutex_);
  unsynced_.push_back(std::move(written));
}

Result<void> ChunkStream::sync() {
  const std::lock_guard one(sync_mutex_);
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return {};
  std::uint32_t placed = 0;
  {
    const std::lock_guard lock(mutex_);
    placed = next_ordinal_;
  }
  VARVE_TRY(writer_->flush());
  std::vector<store::WrittenContainer> written;
  format::Births births;
  {
    const std::lock_guard lock(mutex_);
    written = unsynced_;
    births = births_;
  }
  if (written.empty()) {
    const std::lock_guard lock(mutex_);
    synced_ = std::max(synced_, placed);
    return {};
  }
  VARVE_TRY(writer_->sync());  // O1: the data before the location records.
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(parts_.catalog));
  SegmentLedger ledger(txn, parts_.chunks.id());
  for (const auto& [number, record] : births) {
    const auto is_of_birth = [birth = number](const store::WrittenContainer& container) {
      return container.record.birth == birth;
    };
    if (std::ranges::none_of(written, is_of_birth)) continue;
    VARVE_TRY_ASSIGN(const auto known, catalog::find_birth(txn, parts_.chunks.id(), number));
    if (!known) VARVE_TRY(catalog::put_birth(txn, parts_.chunks.id(), number, record));
  }
  for (const auto& one_written : written) {
    VARVE_TRY(ledger.add(one_written, catalog::SegmentRole::kNew, one_written.record.birth));
  }
  VARVE_TRY(ledger.apply(txn));
  VARVE_TRY(catalog::raise_counters(
      txn, parts_.chunks.id(), {parts_.numbers.next_container(), parts_.numbers.next_segment()}));
  if (parts_.at_sync) VARVE_TRY(parts_.at_sync(txn));
  VARVE_TRY(txn.commit());
  {
    const std::lock_guard lock(mutex_);
    unsynced_.erase(unsynced_.begin(),
                    unsynced_.begin() + static_cast<std::ptrdiff_t>(written.size()));
    synced_ = std::max(synced_, placed);
    if (unsynced_.empty()) {
      std::erase_if(births_, [this](const auto& entry) { return entry.first != birth_; });
    }
  }
  parts_.chunks.forget_written(written);
  return {};
}

VersionNumber ChunkStream::birth() const {
  const std::lock_guard lock(mutex_);
  return birth_;
}

std::uint32_t ChunkStream::synced_chunks() const {
  const std::lock_guard lock(mutex_);
  return synced_;
}

void ChunkStream::end() {
  const std::lock_guard alone(writer_mutex_);
  end_writer();
}

std::vector<FileCut> ChunkStream::drop() {
  const std::lock_guard one(sync_mutex_);
  const std::lock_guard alone(writer_mutex_);
  writer_.reset();
  writer_birth_ = VersionNumber{};
  unwritten_ = 0;
  std::vector<store::WrittenContainer> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = std::exchange(unsynced_, {});
  }
  parts_.chunks.forget_written(dropped);
  std::vector<FileCut> files;
  for (const auto& written : dropped) files.push_back({written.record.segment, 0, 0});
  return files;
}

PlacedBytes ChunkStream::placed() const {
  const std::shared_lock use(writer_mutex_);
  const std::lock_guard lock(mutex_);
  return {placed_raw_, stored_by_ended_writers_ + (writer_ ? writer_->stored_bytes() : 0)};
}

}  // namespace varve::layout
