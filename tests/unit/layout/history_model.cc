// SPDX-License-Identifier: Apache-2.0
#include "history_model.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "volume_records.h"

namespace varve::layout {

namespace {

Fingerprint fingerprint_of(Content content) {
  Fingerprint fingerprint{};
  base::store_le(fingerprint.data(), content);
  return fingerprint;
}

// The catalog's commits are synced: in memory, a history takes seconds instead of minutes.
void prefer_memory() {
  if (std::filesystem::is_directory("/dev/shm")) ::setenv("TEST_TMPDIR", "/dev/shm", 1);
}

}  // namespace

History::History(std::uint64_t seed, const format::Compression& compression)
    : random(seed), codec_(test::codec_of_seed(seed, compression)) {
  prefer_memory();
  directory_ = std::make_unique<test::TempDirectory>();
  must(files.make_directory("/r"));
  start();
}

void History::start() {
  meta::EnvOptions environment;
  environment.tables = meta::catalog::kTables;
  environment.map_bytes = 256ULL << 20;
  catalog_ = std::make_unique<meta::Env>(must(meta::Env::open(directory_->path(), environment)));
  CategoryLayoutOptions options;
  options.series = kSeries;
  options.store = kStore;
  options.metrics = &metrics_;
  if (!store_) store_ = std::make_unique<store::FolderStore>(files, kFolder);
  layout_ = must(CategoryLayout::open(*catalog_, *store_, *codec_, &pool_, options));
}

catalog::VersionRecord History::record(VersionNumber number, VersionState state) const {
  catalog::VersionRecord record;
  record.series = kSeries;
  record.number = number;
  record.name = "v" + std::to_string(static_cast<std::uint32_t>(number));
  record.state = state;
  record.root.mode = S_IFDIR | 0755;
  record.entries = newest_.size();
  record.logical_bytes = 200 * newest_.size();  // About the sum of bytes_of().
  return record;
}

std::vector<VersionNumber> History::sealed() const {
  std::vector<VersionNumber> numbers;
  for (const auto& entry : versions_) numbers.push_back(entry.first);
  return numbers;
}

VersionNumber History::open() {
  const auto number = static_cast<VersionNumber>(next_number_++);
  auto txn = must(meta::WriteTxn::begin(*catalog_));
  must(catalog::put_version(txn, record(number, VersionState::kOpen)));
  (void)must(open_window(txn, kSeries, kStore, number));
  must(txn.commit());
  must(layout_->begin_version(number));
  open_ = number;
  writing_ = {};
  index_.clear();
  const auto read = must(meta::ReadTxn::begin(*catalog_));
  const auto window = must(catalog::version_chunks(read, kSeries, number));
  for (const auto& run : window.runs()) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      index_[content_of_.at(run.first.plus(i).value)] = run.first.plus(i);
    }
  }
  return number;
}

void History::write(const std::vector<Content>& stream) {
  for (const auto content : stream) {
    const auto known = index_.find(content);
    if (known != index_.end()) {
      writing_.chunks.emplace_back(known->second, content);
      continue;
    }
    const auto bytes = bytes_of(content);
    const auto id = must(layout_->place(fingerprint_of(content), base::as_bytes(bytes)));
    index_[content] = id;
    content_of_[id.value] = content;
    writing_.chunks.emplace_back(id, content);
  }
}

void History::seal() {
  must(layout_->sync());
  std::vector<base::IdRun> runs;
  newest_.clear();
  for (const auto& [id, content] : writing_.chunks) {
    runs.push_back({id, 1});
    newest_.push_back(content);
  }
  const auto chunks = base::IdRuns::from(std::move(runs));
  const auto sealed = record(*open_, VersionState::kSealed);
  auto txn = must(meta::WriteTxn::begin(*catalog_));
  const base::TreeSize size{sealed.entries, sealed.logical_bytes};
  side = writing_.side = must(is_side_version(txn, kSeries, kStore, size, chunks));
  must(catalog::put_version_chunks(txn, kSeries, *open_, chunks));
  must(catalog::put_retention(txn, kSeries, *open_, {writing_.side, {}}));
  must(catalog::put_version(txn, sealed));
  must(txn.commit());
  versions_[*open_] = std::move(writing_);
  open_.reset();
}

void History::abandon() {
  auto txn = must(meta::WriteTxn::begin(*catalog_));
  must(catalog::erase_version(txn, kSeries, *open_));
  must(txn.commit());
  must(layout_->on_delete(*open_));
  open_.reset();
}

Result<bool> History::arrange(std::uint64_t steps_max) {
  std::uint64_t steps = 0;
  ArrangerParts parts;
  parts.layout = layout_.get();
  parts.step_bytes_max = step_bytes_max;
  parts.batch_bytes_max = batch_bytes_max;
  parts.shared_bytes_max = shared_bytes_max;
  parts.coalescing = coalescing;
  parts.stop = [&] { return steps >= steps_max; };
  // No file is cut or removed before it is announced (O22).
  auto sizes = file_sizes();
  bool is_announced = false;
  const auto expect_all_there = [&] {
    if (is_announced) return;
    const auto now = file_sizes();
    if (now.empty()) return;
    for (const auto& [path, bytes] : sizes) {
      const auto found = now.find(path);
      EXPECT_TRUE(found != now.end() && found->second >= bytes) << path;
    }
  };
  parts.before_freeing = [&] {
    expect_all_there();
    is_announced = true;
  };
  parts.after_step = [&](const MoveOutcome&) {
    ++steps;
    expect_all_there();
    sizes = file_sizes();
    is_announced = false;
  };
  parts.newest = [this](const std::function<bool(const base::IdRun&)>& visit) -> Result<void> {
    if (versions_.empty()) return {};
    for (const auto& chunk : versions_.rbegin()->second.chunks) {
      if (!visit({chunk.first, 1})) break;
    }
    return {};
  };
  ArrangeSettings settings;
  {
    const auto txn = must(meta::ReadTxn::begin(*catalog_));
    settings = must(catalog::find_arrange_settings(txn));
  }
  const std::uint64_t runs = metrics_.runs.value();
  const std::uint64_t read = metrics_.read_bytes.value();
  const std::uint64_t written = metrics_.written_bytes.value();
  const std::uint64_t freed = metrics_.freed_bytes.value();
  const std::uint64_t coalesced = metrics_.coalesced_bytes.value();
  const std::uint64_t busy = metrics_.busy_seconds.value();
  Arranger arranger(parts, settings);
  auto finished = arranger.run();
  moved = arranger.done();
  expect_all_there();
  coalesced_bytes += metrics_.coalesced_bytes.value() - coalesced;
  EXPECT_EQ(metrics_.runs.value(), runs + 1);
  EXPECT_EQ(metrics_.read_bytes.value(), read + moved.bytes_read);
  EXPECT_EQ(metrics_.written_bytes.value(), written + moved.bytes_written);
  EXPECT_EQ(metrics_.freed_bytes.value(), freed + moved.bytes_freed);
  EXPECT_GT(metrics_.busy_seconds.value(), busy);
  return finished;
}

// Nothing, if the disk fails.
std::map<std::string, std::uint64_t> History::file_sizes() {
  std::map<std::string, std::uint64_t> sizes;
  for (const auto* const folder : {"/active/", "/volumes/"}) {
    const auto names = files.list(kFolder + folder);
    if (!names) continue;
    for (const auto& name : *names) {
      const auto path = kFolder + folder + name;
      if (const auto bytes = files.tree_bytes(path)) sizes[path] = *bytes;
    }
  }
  return sizes;
}

Result<void> History::try_remove(const std::vector<VersionNumber>& numbers) {
  const CategoryLayout::Exclusive exclusive(*layout_, CategoryLayout::Exclusive::For::kDeleting);
  VARVE_TRY_ASSIGN(const auto snapshot, meta::ReadTxn::begin(*catalog_));
  VARVE_TRY_ASSIGN(const auto plan, plan_deletion(*layout_, snapshot, numbers));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*catalog_));
  for (const auto number : numbers) {
    VARVE_TRY(catalog::erase_version(txn, kSeries, number));
    VARVE_TRY(catalog::erase_retention(txn, kSeries, number));
  }
  VARVE_TRY(plan.ledger.apply(txn));
  VARVE_TRY(txn.commit());
  for (const auto number : numbers) versions_.erase(number);
  return layout_->free(plan.ledger.cuts());
}

void History::remove(const std::vector<VersionNumber>& numbers) {
  const auto before = must(files.tree_bytes(kFolder));
  std::uint64_t forecast = 0;
  {
    const auto txn = must(meta::ReadTxn::begin(*catalog_));
    forecast = must(plan_deletion(*layout_, txn, numbers)).ledger.freed_bytes();
  }
  must(try_remove(numbers));
  EXPECT_EQ(before - must(files.tree_bytes(kFolder)), forecast);
}

void History::set(const ArrangeSettings& settings) {
  auto txn = must(meta::WriteTxn::begin(*catalog_));
  must(catalog::put_arrange_settings(txn, settings));
  must(txn.commit());
}

void History::crash() {
  layout_.reset();
  catalog_.reset();
  files.crash();
  start();
  if (open_) abandon();
}

void History::check() {
  check_records();
  check_volumes();
  check_categories();
  check_reading();
}

// Each chunk of a version is in one category, and the version is in that one's interval.
void History::check_categories() {
  const auto txn = must(meta::ReadTxn::begin(*catalog_));
  const auto segment_of = segments_by_container(txn);
  base::IdRuns archived_later;  // Of the volumes that are not older than the version at hand.
  std::map<VersionNumber, std::vector<base::IdRun>> by_death;
  std::vector<base::IdRun> in_use;
  must(catalog::for_each_location(
      txn, kStore, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
        const auto& segment = segment_of.at(at.container);
        auto& runs = segment.active() ? in_use : by_death[segment.version];
        runs.push_back({at.first, at.count});
        return true;
      }));
  base::IdRuns referred;
  for (const auto& version : versions_) referred = referred.unite(chunk_set(version.first));
  for (const auto& entry : by_death) {
    EXPECT_EQ(base::IdRuns::from(entry.second).subtract(referred).size(), 0U)
        << "a volume holds chunks that no version refers to";
  }
  const auto active = base::IdRuns::from(std::move(in_use));
  auto death = by_death.rbegin();
  for (auto version = versions_.rbegin(); version != versions_.rend(); ++version) {
    for (; death != by_death.rend() && death->first >= version->first; ++death) {
      const auto chunks = base::IdRuns::from(death->second);
      EXPECT_EQ(archived_later.intersect(chunks).size(), 0U) << "a chunk is in two categories";
      archived_later = archived_later.unite(chunks);
    }
    auto left = chunk_set(version->first);
    for (const auto& run : left.runs()) {
      EXPECT_LE(run.first.birth(), version->first) << "a chunk is younger than its version";
    }
    left = left.subtract(active).subtract(archived_later);
    EXPECT_EQ(left.size(), 0U) << "version " << static_cast<std::uint32_t>(version->first)
                               << " refers to chunks of categories that died before it";
  }
}

// Each chunk of a live version lies in one place, and reads back as it was written.
void History::check_reading() {
  std::map<std::uint64_t, std::pair<ContainerNumber, std::uint32_t>> place_of;
  {
    const auto txn = must(meta::ReadTxn::begin(*catalog_));
    std::uint64_t end = 0;
    must(catalog::for_each_location(
        txn, kStore, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
          EXPECT_GE(at.first.value, end) << "two locations of one chunk";
          end = at.first.value + at.count;
          for (std::uint32_t i = 0; i < at.count; ++i) {
            place_of[at.first.value + i] = {at.container, at.index + i};
          }
          return true;
        }));
  }
  std::map<std::uint64_t, Content> live;
  for (const auto& entry : versions_) {
    for (const auto& [id, content] : entry.second.chunks) live[id.value] = content;
  }
  std::map<std::pair<ContainerNumber, std::uint32_t>, std::vector<std::byte>> frames;
  for (const auto& [id, content] : live) {
    const auto at = place_of.find(id);
    ASSERT_NE(at, place_of.end()) << "chunk " << id << " is lost";
    const auto [container, index] = at->second;
    const auto header = must(layout_->header(container));
    const auto& chunk = header->chunks.at(index);
    ASSERT_EQ(chunk.id.value, id);
    auto& raw = frames[{container, chunk.frame}];
    if (raw.empty()) {
      const auto& frame = header->frames[chunk.frame];
      std::vector<std::byte> stored(format::extent_bytes(frame));
      raw.resize(frame.raw_bytes);
      must(layout_->read_data(container, format::extent_begin(frame), stored));
      must(format::decode_frame(*codec_, *header, chunk.frame, stored, raw));
    }
    const auto bytes = std::span(raw).subspan(chunk.frame_offset, chunk.raw_bytes);
    ASSERT_TRUE(base::as_text(bytes) == bytes_of(content)) << "chunk " << id << " is altered";
  }
}

// The records agree with each other and with the files.
void History::check_records() {
  const auto txn = must(meta::ReadTxn::begin(*catalog_));
  std::map<ContainerNumber, std::uint64_t> located;
  must(catalog::for_each_location(txn, kStore, ChunkId{},
                                  [&](const catalog::LocationRecord& at) -> Result<bool> {
                                    located[at.container] += at.raw_bytes;
                                    return true;
                                  }));
  struct Sums {
    std::uint64_t raw = 0;
    std::uint64_t live = 0;
    std::uint64_t end = 0;
    std::uint32_t containers = 0;
  };
  std::map<SegmentNumber, Sums> sums;
  must(catalog::for_each_container(txn, kStore,
                                   [&](const format::ContainerRecord& record) -> Result<bool> {
                                     EXPECT_EQ(record.live_bytes, located[record.number])
                                         << "container " << format_as(record.number);
                                     located.erase(record.number);
                                     auto& sum = sums[record.segment];
                                     sum.raw += record.raw_bytes;
                                     sum.live += record.live_bytes;
                                     sum.end = std::max(sum.end, record.end());
                                     ++sum.containers;
                                     return true;
                                   }));
  EXPECT_TRUE(located.empty()) << "chunks are located in containers that are not there";
  for (const auto& segment : must(catalog::list_segments(txn, kStore))) {
    const auto sum = sums[segment.segment];
    sums.erase(segment.segment);
    EXPECT_EQ(segment.raw_bytes, sum.raw);
    EXPECT_EQ(segment.live_bytes, sum.live);
    EXPECT_GT(segment.live_bytes, 0U) << "a file that holds nothing";
    EXPECT_EQ(segment.containers, sum.containers);
    EXPECT_EQ(segment.bytes, sum.end);
    const auto length =
        must(files.tree_bytes(kFolder + "/" + store::segment_path(segment.segment)));
    if (open_ && segment.version == *open_) continue;
    EXPECT_EQ(length, segment.bytes) << store::segment_path(segment.segment);
  }
  EXPECT_TRUE(sums.empty()) << "containers in a file without a record";
}

// Births ascend; dead categories are cut off; and there are no more categories than pairs of
// versions.
void History::check_volumes() {
  const auto txn = must(meta::ReadTxn::begin(*catalog_));
  const auto versions = must(live_versions(txn, kSeries));
  std::map<SegmentNumber, catalog::SegmentRecord> volumes;
  for (const auto& segment : must(catalog::list_segments(txn, kStore))) {
    if (!segment.active()) volumes[segment.segment] = segment;
  }
  struct Place {
    VersionNumber birth{};
    std::uint64_t end = 0;
  };
  std::map<SegmentNumber, std::map<std::uint64_t, Place>> births;
  std::set<std::pair<VersionNumber, VersionNumber>> categories;
  must(catalog::for_each_container(
      txn, kStore, [&](const format::ContainerRecord& record) -> Result<bool> {
        const auto volume = volumes.find(record.segment);
        if (volume == volumes.end()) return true;
        births[record.segment][record.offset] = {record.birth, record.end()};
        expect_no_lower_birth(*must(layout_->header(record.number)), record.birth);
        const auto death = newest_at_most(versions, volume->second.version);
        EXPECT_GE(death, record.birth) << "a dead category was not cut off";
        const auto first = std::find_if(versions.begin(), versions.end(), [&](const auto& version) {
          return version.number >= record.birth;
        });
        categories.emplace(first->number, death);
        return true;
      }));
  for (const auto& volume : births) {
    Place last;
    for (const auto& [offset, place] : volume.second) {
      EXPECT_GE(place.birth, last.birth) << "births descend in a volume";
      EXPECT_EQ(offset, last.end) << "what was dead did not stand at the volume's end";
      last = place;
    }
  }
  const auto m = versions.size();
  EXPECT_LE(categories.size(), m * (m + 1) / 2);
}

base::IdRuns History::chunk_set(VersionNumber number) {
  std::vector<base::IdRun> runs;
  for (const auto& chunk : versions_.at(number).chunks) runs.push_back({chunk.first, 1});
  return base::IdRuns::from(std::move(runs));
}

base::IdRuns History::read_set(VersionNumber number) {
  const auto txn = must(meta::ReadTxn::begin(*catalog_));
  const auto segment_of = segments_by_container(txn);
  std::vector<base::IdRun> runs;
  must(catalog::for_each_location(
      txn, kStore, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
        const auto& segment = segment_of.at(at.container);
        if (at.first.birth() <= number && (segment.active() || segment.version >= number)) {
          runs.push_back({at.first, at.count});
        }
        return true;
      }));
  return base::IdRuns::from(std::move(runs));
}

}  // namespace varve::layout
