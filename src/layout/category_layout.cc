// SPDX-License-Identifier: Apache-2.0
#include "layout/category_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "catalog/location_table.h"
#include "meta/schema.h"

namespace varve::layout {

CategoryLayout::CategoryLayout(const meta::Env& catalog, io::FileSystem& files,
                               base::ThreadPool* compressors, CategoryLayoutOptions options)
    : catalog_(catalog),
      files_(files),
      compressors_(compressors),
      options_(std::move(options)),
      reader_(files, options_.series_directory + "/active") {}

Result<std::unique_ptr<CategoryLayout>> CategoryLayout::open(const meta::Env& catalog,
                                                             io::FileSystem& files,
                                                             base::ThreadPool* compressors,
                                                             const CategoryLayoutOptions& options) {
  std::unique_ptr<CategoryLayout> layout(new CategoryLayout(catalog, files, compressors, options));
  if (!options.read_only) {
    VARVE_TRY(files.make_directory(options.series_directory));
    VARVE_TRY(files.make_directory(options.series_directory + "/active"));
    VARVE_TRY(files.sync_directory(options.series_directory));
  }
  return layout;
}

// Containers beyond the catalog's knowledge were never referred to: a crash left them, and
// the writer overwrites them (docs/ORDERING.md O6).
Result<void> CategoryLayout::start_writer() {
  store::ContainerWriterOptions writer;
  writer.series = options_.series;
  writer.directory = options_.series_directory + "/active";
  writer.codec = options_.codec;
  writer.zstd_level = options_.zstd_level;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY(catalog::for_each_container(
      txn, options_.series, [&](const store::ContainerRecord& record) -> Result<bool> {
        writer.next_container = std::max(writer.next_container, record.number + 1);
        if (std::pair(record.segment, record.end()) >
            std::pair(writer.segment, writer.segment_offset)) {
          writer.segment = record.segment;
          writer.segment_offset = record.end();
        }
        return true;
      }));
  {
    const std::lock_guard lock(mutex_);
    writer.next_container = std::max(writer.next_container, containers_used_);
  }
  VARVE_TRY_ASSIGN(const auto names, files_.list(writer.directory));
  for (const auto& name : names) {
    if (name > store::segment_name(writer.segment)) {
      VARVE_TRY(files_.remove(writer.directory + "/" + name));
    }
  }
  reader_.forget_files();
  const auto newest = writer.directory + "/" + store::segment_name(writer.segment);
  VARVE_TRY_ASSIGN(const bool present, files_.exists(newest));
  if (present) {
    VARVE_TRY_ASSIGN(const auto file, files_.open(newest, io::OpenMode::kReadWrite));
    VARVE_TRY(file->truncate(writer.segment_offset));
  }
  writer_ = std::make_unique<store::ContainerWriter>(
      files_, *compressors_, writer,
      [this](store::WrittenContainer written) { on_written(std::move(written)); });
  return {};
}

Result<void> CategoryLayout::begin_version(VersionNumber number) {
  {
    const std::lock_guard alone(writer_mutex_);
    if (!writer_) VARVE_TRY(start_writer());
  }
  std::uint32_t next = 0;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  const auto after =
      ChunkId::make(static_cast<VersionNumber>(static_cast<std::uint32_t>(number) + 1), 0);
  VARVE_TRY_ASSIGN(const auto last,
                   catalog::find_last_location_before(txn, options_.series, after));
  if (last && last->first.birth() == number) next = last->first.ordinal() + last->count;
  const std::lock_guard lock(mutex_);
  // Where an earlier attempt to open the version failed, chunks that it placed may still be
  // on their way: their ids must not be given again.
  next_ordinal_ = number == number_ ? std::max(next, next_ordinal_) : next;
  number_ = number;
  placed_raw_ = 0;
  return {};
}

Result<ChunkId> CategoryLayout::place(const Fingerprint& fingerprint,
                                      std::span<const std::byte> raw) {
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return Error(ErrorCode::kInvalid, "no version is begun", EINVAL);
  ChunkId id;
  {
    const std::lock_guard lock(mutex_);
    id = ChunkId::make(number_, next_ordinal_);
    if (next_ordinal_ == 0xffffffffU) {
      return Error(ErrorCode::kTooLarge, "a version can hold 4,294,967,294 new chunks at most",
                   EFBIG);
    }
  }
  // Only the ingest pipeline's committing thread places, one chunk at a time, so nobody
  // takes the ordinal in between; on_written() needs mutex_ free while append() waits.
  VARVE_TRY(writer_->append(id, fingerprint, raw));
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
  const std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < written.ids.size(); ++i) {
    const auto& run = written.ids[i];
    new_locations_[run.first.value] =
        LocationRun{run.first, run.count, written.run_raw_bytes[i], written.record.number, index};
    index += run.count;
  }
  new_containers_[written.record.number] = written.record;
  containers_used_ = std::max(containers_used_, written.record.number + 1);
}

Result<void> CategoryLayout::sync() {
  const std::lock_guard one(sync_mutex_);
  const std::shared_lock use(writer_mutex_);
  if (!writer_) return {};
  VARVE_TRY(writer_->flush());
  std::map<std::uint64_t, LocationRun> locations;
  std::unordered_map<std::uint32_t, store::ContainerRecord> containers;
  {
    const std::lock_guard lock(mutex_);
    locations = new_locations_;
    containers = new_containers_;
  }
  if (containers.empty()) return {};
  VARVE_TRY(writer_->sync());  // O1: the data before the records that locate it.
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  for (const auto& [number, record] : containers) {
    VARVE_TRY(catalog::put_container(txn, options_.series, record));
  }
  for (const auto& [first, run] : locations) {
    VARVE_TRY(catalog::put_location(
        txn, options_.series, {run.first, run.count, run.raw_bytes, run.container, run.index}));
  }
  VARVE_TRY(txn.commit());
  const std::lock_guard lock(mutex_);
  for (const auto& entry : locations) new_locations_.erase(entry.first);
  for (const auto& entry : containers) new_containers_.erase(entry.first);
  return {};
}

Result<void> CategoryLayout::on_seal(VersionNumber /*number*/, const base::IdRuns& /*live*/) {
  return sync();
}

// What an abandoned version stored lies in containers of its own at the end of the newest
// segments; nobody else refers to it. The records go first, then the space (O7).
Result<void> CategoryLayout::on_delete(VersionNumber number) {
  const std::lock_guard one(sync_mutex_);
  const std::lock_guard alone(writer_mutex_);
  writer_.reset();
  {
    const std::lock_guard lock(mutex_);
    new_locations_.clear();
    new_containers_.clear();
  }
  {
    const std::lock_guard lock(heads_mutex_);
    heads_.clear();
    head_of_.clear();
  }
  std::vector<catalog::LocationRecord> gone;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::for_each_location(txn, options_.series, ChunkId::make(number, 0),
                                       [&](const catalog::LocationRecord& record) -> Result<bool> {
                                         if (record.first.birth() != number) return false;
                                         gone.push_back(record);
                                         return true;
                                       }));
  for (const auto& record : gone) {
    VARVE_TRY(
        txn.erase(meta::catalog::kLocations, meta::location_key(options_.series, record.first)));
    VARVE_TRY(txn.erase(meta::catalog::kContainers,
                        meta::container_key(options_.series, record.container)));
  }
  VARVE_TRY(txn.commit());
  return start_writer();
}

PlacedBytes CategoryLayout::placed() const {
  const std::shared_lock use(writer_mutex_);
  const std::lock_guard lock(mutex_);
  return {placed_raw_, writer_ ? writer_->stored_bytes() : 0};
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
  VARVE_TRY_ASSIGN(const auto found, catalog::find_location(txn, options_.series, id));
  if (!found) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("chunk {}.{} of series {} is not stored",
                             static_cast<std::uint32_t>(id.birth()), id.ordinal(),
                             static_cast<std::uint32_t>(options_.series)),
                 EIO);
  }
  return LocationRun{found->first, found->count, found->raw_bytes, found->container, found->index};
}

Result<store::ContainerRecord> CategoryLayout::record(std::uint32_t container) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = new_containers_.find(container);
    if (it != new_containers_.end()) return it->second;
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto found, catalog::find_container(txn, options_.series, container));
  if (!found) {
    return Error(ErrorCode::kCorrupt, fmt::format("container {} is not in the catalog", container),
                 EIO);
  }
  return *found;
}

Result<std::shared_ptr<const format::ContainerHead>> CategoryLayout::head(std::uint32_t container) {
  {
    const std::lock_guard lock(heads_mutex_);
    const auto it = head_of_.find(container);
    if (it != head_of_.end()) {
      heads_.splice(heads_.begin(), heads_, it->second);
      return it->second->second;
    }
  }
  VARVE_TRY_ASSIGN(const auto where, record(container));
  VARVE_TRY_ASSIGN(auto decoded, reader_.read_head(options_.series, where));
  auto shared = std::make_shared<const format::ContainerHead>(std::move(decoded));
  const std::lock_guard lock(heads_mutex_);
  if (!head_of_.contains(container)) {
    heads_.emplace_front(container, shared);
    head_of_[container] = heads_.begin();
    if (heads_.size() > kHeadsCached) {
      head_of_.erase(heads_.back().first);
      heads_.pop_back();
    }
  }
  return shared;
}

Result<void> CategoryLayout::read_data(std::uint32_t container, std::uint32_t offset,
                                       std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(const auto where, record(container));
  return reader_.read_data(where, offset, out);
}

std::string CategoryLayout::describe(std::uint32_t container) {
  const auto where = record(container);
  return where ? reader_.describe(*where) : fmt::format("container {}", container);
}

}  // namespace varve::layout
