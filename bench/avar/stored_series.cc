// SPDX-License-Identifier: Apache-2.0
#include "avar/stored_series.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "layout/arranger.h"
#include "layout/deletion.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "restore/restore_engine.h"

namespace varve::bench {

namespace {

namespace fs = std::filesystem;

constexpr SeriesId kSeries{1};
constexpr StoreId kStore{1};
constexpr std::uint64_t kGapBytes = 1U << 20;  // Reads include shorter gaps.
constexpr std::size_t kAreaBytes = 4U << 20;   // The area size of a reading session.
constexpr std::size_t kAreas = 4;

// Returns the bytes that this process has read from files, from the disk or the page cache.
std::uint64_t bytes_read_so_far() {
  std::ifstream in("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  in >> key >> value;  // rchar is the first line.
  return value;
}

class IdStream final : public restore::RunStream {
 public:
  IdStream(const std::vector<ChunkId>& ids,
           const std::unordered_map<std::uint64_t, std::uint32_t>& bytes_of)
      : ids_(ids), bytes_of_(bytes_of) {}
  Result<std::optional<restore::StreamRun>> next() override {
    if (at_ == ids_.size()) return std::optional<restore::StreamRun>();
    restore::StreamRun run{ids_[at_], 0, 0, position_};
    while (at_ < ids_.size() && ids_[at_] == run.first.plus(run.count)) {
      run.bytes += bytes_of_.at(ids_[at_++].value);
      ++run.count;
    }
    position_ += run.bytes;
    return std::optional(run);
  }

 private:
  const std::vector<ChunkId>& ids_;
  const std::unordered_map<std::uint64_t, std::uint32_t>& bytes_of_;
  std::size_t at_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace

StoredSeries::StoredSeries(std::string directory, const ArrangeSettings& settings,
                           std::unique_ptr<io::FileSystem> files)
    : directory_(std::move(directory)), files_(std::move(files)), settings_(settings) {
  fs::remove_all(directory_);
  fs::create_directories(directory_ + "/catalog");
  open();
  auto txn = must(meta::WriteTxn::begin(*catalog_));
  must(catalog::put_arrange_settings(txn, settings));
  must(txn.commit());
}

StoredSeries::~StoredSeries() {
  close();
  fs::remove_all(directory_);
  fs::remove_all(directory_ + ".kept");
}

void StoredSeries::open() {
  meta::EnvOptions environment;
  environment.tables = meta::catalog::kTables;
  catalog_ =
      std::make_unique<meta::Env>(must(meta::Env::open(directory_ + "/catalog", environment)));
  layout::CategoryLayoutOptions options;
  options.series = kSeries;
  options.store = kStore;
  store_ = std::make_unique<store::FolderStore>(*files_, directory_ + "/1");
  layout_ = must(layout::CategoryLayout::open(*catalog_, *store_, *codec_, &pool_, options));
}

void StoredSeries::close() {
  layout_.reset();
  catalog_.reset();
}

void StoredSeries::keep() {
  close();
  fs::remove_all(directory_ + ".kept");
  fs::copy(directory_, directory_ + ".kept", fs::copy_options::recursive);
  ::sync();
  open();
}

void StoredSeries::go_back() {
  close();
  fs::remove_all(directory_);
  fs::copy(directory_ + ".kept", directory_, fs::copy_options::recursive);
  ::sync();  // The next measurement must not wait for the copy.
  open();
}

void StoredSeries::store(const std::vector<Content>& stream, const ContentSource& source) {
  const auto number = static_cast<VersionNumber>(streams_.size() + 1);
  put(number, VersionState::kOpen);
  must(layout_->begin_version(number));
  std::unordered_map<Content, ChunkId> window;
  {
    const auto txn = must(meta::ReadTxn::begin(*catalog_));
    const auto ids = must(catalog::version_chunks(txn, kSeries, number));
    for (const auto& run : ids.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto id = run.first.plus(i);
        window[content_of_.at(id.value)] = id;
      }
    }
  }
  std::vector<ChunkId> chunks;
  backup_bytes_ = 0;
  for (const auto content : stream) {
    backup_bytes_ += source.bytes_of(content);
    auto known = window.find(content);
    if (known == window.end()) {
      const auto raw = source.data_of(content);
      Fingerprint fingerprint{};
      base::store_le(fingerprint.data(), content);
      const auto id = must(layout_->place(fingerprint, raw));
      known = window.emplace(content, id).first;
      content_of_[id.value] = content;
      bytes_of_[id.value] = static_cast<std::uint32_t>(raw.size());
      new_bytes_ += raw.size();
    }
    chunks.push_back(known->second);
  }
  must(layout_->sync());
  streams_.push_back(std::move(chunks));
  put(number, VersionState::kSealed);
}

void StoredSeries::put(VersionNumber number, VersionState state) {
  auto txn = must(meta::WriteTxn::begin(*catalog_));
  catalog::VersionRecord record;
  record.series = kSeries;
  record.number = number;
  record.name = std::to_string(static_cast<std::uint32_t>(number));
  record.state = state;
  record.root.mode = 0040755;
  if (state == VersionState::kOpen) {
    (void)must(layout::open_window(txn, kSeries, kStore, number));
  } else {
    std::vector<base::IdRun> runs;
    for (const auto id : streams_.back()) runs.push_back({id, 1});
    const auto chunks = base::IdRuns::from(std::move(runs));
    record.entries = streams_.back().size();
    for (const auto id : streams_.back()) record.logical_bytes += bytes_of_.at(id.value);
    const bool side = must(layout::is_side_version(txn, kSeries, kStore,
                                                   {record.entries, record.logical_bytes}, chunks));
    must(catalog::put_version_chunks(txn, kSeries, number, chunks));
    must(catalog::put_retention(txn, kSeries, number, {side, {}}));
  }
  must(catalog::put_version(txn, record));
  must(txn.commit());
}

layout::MoveOutcome StoredSeries::arrange() {
  layout::ArrangerParts parts;
  parts.layout = layout_.get();
  parts.newest = [this](const std::function<bool(const base::IdRun&)>& visit) -> Result<void> {
    for (const auto id : streams_.back()) {
      if (!visit({id, 1})) break;
    }
    return {};
  };
  layout::Arranger arranger(parts, settings_);
  must(arranger.run());
  return arranger.done();
}

std::unordered_map<std::string, std::uint64_t> StoredSeries::file_sizes() const {
  std::unordered_map<std::string, std::uint64_t> sizes;
  for (const auto& at : fs::recursive_directory_iterator(directory_ + "/1")) {
    if (at.is_regular_file()) sizes[at.path().string()] = at.file_size();
  }
  return sizes;
}

// Deletes as the repository does, but without the trees, which cost the same under every policy.
Deletion StoredSeries::remove(const std::vector<std::size_t>& versions) {
  std::vector<VersionNumber> numbers;
  for (const auto version : versions) numbers.push_back(static_cast<VersionNumber>(version + 1));
  const auto before = file_sizes();
  Deletion deletion;
  const auto start = std::chrono::steady_clock::now();
  {
    const layout::CategoryLayout::Exclusive exclusive(
        *layout_, layout::CategoryLayout::Exclusive::For::kDeleting);
    const auto snapshot = must(meta::ReadTxn::begin(*catalog_));
    const auto plan = must(layout::plan_deletion(*layout_, snapshot, numbers));
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    for (const auto number : numbers) {
      must(catalog::erase_version(txn, kSeries, number));
      must(catalog::erase_retention(txn, kSeries, number));
    }
    must(plan.ledger.apply(txn));
    must(txn.commit());
    must(layout_->free(plan.ledger.cuts()));
    deletion.freed = plan.ledger.freed_bytes();
  }
  deletion.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const auto& [path, size] : file_sizes()) {
    const auto old = before.find(path);
    const auto was = old == before.end() ? 0 : old->second;
    deletion.moved += size - std::min(size, was);
  }
  return deletion;
}

double StoredSeries::dead_share() {
  const auto txn = must(meta::ReadTxn::begin(*catalog_));
  const auto view = must(layout::view_active_set(txn, kSeries, kStore, settings_, {}));
  std::uint64_t dead = view.state.departing_bytes;
  std::uint64_t all = 0;
  for (const auto& file : view.state.files) {
    dead += file.raw_bytes - file.live_bytes;
    all += file.raw_bytes;
  }
  return static_cast<double>(dead) / static_cast<double>(std::max<std::uint64_t>(all - dead, 1));
}

std::uint64_t StoredSeries::stored_bytes() { return must(files_->tree_bytes(directory_ + "/1")); }

Space StoredSeries::space() {
  Space space;
  space.files = stored_bytes();
  const auto txn = must(meta::ReadTxn::begin(*catalog_));
  for (const auto& segment : must(catalog::list_segments(txn, kStore))) {
    space.live += segment.live_bytes;
    space.dead += segment.raw_bytes - segment.live_bytes;
  }
  space.headers = space.files - space.live - space.dead;
  return space;
}

Reads StoredSeries::reads_of(std::size_t version) {
  auto reads = reads_in_order_of(version);
  read_scattered(version, reads);
  return reads;
}

Reads StoredSeries::reads_in_order_of(std::size_t version) {
  Reads reads;
  auto ids = streams_[version];
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const auto id : ids) reads.unique_bytes += bytes_of_.at(id.value);
  read_in_order(version, reads);
  return reads;
}

void StoredSeries::read_scattered(std::size_t version, Reads& reads) {
  std::map<SegmentNumber, std::map<std::uint64_t, std::uint64_t>> wanted;
  std::uint64_t useful = 0;
  {
    const auto txn = must(meta::ReadTxn::begin(*catalog_));
    std::unordered_map<ContainerNumber, format::ContainerRecord> containers;
    must(catalog::for_each_container(txn, kStore,
                                     [&](const format::ContainerRecord& r) -> Result<bool> {
                                       containers[r.number] = r;
                                       return true;
                                     }));
    for (const auto id : streams_[version]) {
      const auto at = must(catalog::find_location(txn, kStore, id));
      const auto& record = containers.at(at->container);
      const auto header = must(layout_->header(at->container));
      const auto index = at->index + static_cast<std::uint32_t>(id.value - at->first.value);
      const auto& chunk = header->chunks[index];
      const std::uint64_t offset = record.offset + record.header_bytes +
                                   header->frames[chunk.frame].offset + chunk.frame_offset;
      if (wanted[record.segment].emplace(offset, chunk.raw_bytes).second) {
        useful += chunk.raw_bytes;
      }
    }
  }
  std::uint64_t read = 0;
  for (const auto& [segment, ranges] : wanted) {
    std::uint64_t begin = ranges.begin()->first;
    std::uint64_t end = begin;
    for (const auto& [offset, bytes] : ranges) {
      if (offset > end + kGapBytes) {
        read += end - begin;
        ++reads.extents;
        begin = offset;
      }
      end = offset + bytes;
    }
    read += end - begin;
    ++reads.extents;
  }
  reads.amplification = static_cast<double>(read) / static_cast<double>(useful);
}

void StoredSeries::read_in_order(std::size_t version, Reads& reads) {
  close();
  open();  // Drops all headers from memory.
  restore::MemoryMeter meter;
  base::Metrics registry;
  const restore::ReadMetrics metrics(registry);
  restore::SliceReader reader(metrics);
  restore::BufferPool areas(1, &meter);
  restore::BufferPool slices(2, &meter);
  IdStream stream(streams_[version], bytes_of_);
  const auto before = bytes_read_so_far();
  std::uint64_t delivered = 0;
  {
    const auto engine = must(restore::make_engine(
        "alacc",
        {layout_.get(), &stream, &reader, &areas, &slices, &meter, &metrics, nullptr, &pool_},
        {engine_bytes_, kAreas * kAreaBytes}));
    while (true) {
      const auto area = must(engine->assemble(kAreaBytes));
      if (!area) break;
      const auto bytes = area->end() - area->position();
      if (area->good_bytes(area->position()) != bytes) {
        must(Result<void>(Error(ErrorCode::kCorrupt, "the engine could not read a chunk")));
      }
      delivered += bytes;
    }
  }
  reads.read_bytes = bytes_read_so_far() - before;
  reads.logical_bytes = delivered;
  reads.in_order = static_cast<double>(reads.read_bytes) / static_cast<double>(delivered);
  reads.requests = metrics.requests.value();
}

}  // namespace varve::bench
