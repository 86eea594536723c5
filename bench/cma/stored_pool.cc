// SPDX-License-Identifier: Apache-2.0
#include "cma/stored_pool.h"

#include <fmt/format.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "base/id_runs.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "format/frame_codec.h"
#include "io/posix_file_system.h"
#include "layout/pool_store.h"
#include "meta/schema.h"
#include "must.h"
#include "store/folder_store.h"
#include "store/repository_paths.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/retention.h"

namespace varve::bench {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSeriesName = "series";
constexpr std::size_t kPieceBytes = 1U << 20;
/// Every record of the catalog has a checksum.
constexpr std::uint64_t kChecksumBytes = 4;

std::unique_ptr<Repository> open_repository(const std::string& path) {
  OpenOptions options;
  options.arrange = false;
  options.autoseal_s = 0;
  return must(Repository::open(path, options));
}

/// The catalog and the pool of a closed repository.
class PoolReader {
 public:
  explicit PoolReader(const std::string& repository)
      : paths_(repository), catalog_(must(meta::Env::open(paths_.catalog(), options()))) {
    layout::PoolParts parts{catalog_, *codec_};
    parts.read_only = true;
    pool_ = must(layout::PoolStore::open(
        parts, std::make_unique<store::FolderStore>(*files_, paths_.pool())));
  }

  [[nodiscard]] const meta::Env& catalog() const { return catalog_; }
  [[nodiscard]] layout::StoredChunks& chunks() { return pool_->chunks(); }
  [[nodiscard]] std::vector<format::ContainerRecord> containers() const {
    std::vector<format::ContainerRecord> records;
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    must(catalog::for_each_container(txn, kPoolStore,
                                     [&](const format::ContainerRecord& record) -> Result<bool> {
                                       records.push_back(record);
                                       return true;
                                     }));
    return records;
  }

 private:
  static meta::EnvOptions options() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.read_only = true;
    return options;
  }

  const store::RepositoryPaths paths_;
  const std::unique_ptr<io::FileSystem> files_ = io::make_posix_file_system();
  const std::unique_ptr<const format::FrameCodec> codec_ =
      format::make_plain_frame_codec({Codec::kNone, 1});
  const meta::Env catalog_;
  std::unique_ptr<layout::PoolStore> pool_;
};

std::vector<PoolChunk> chunks_of(const format::ContainerHeader& header) {
  std::vector<PoolChunk> chunks;
  for (const auto& chunk : header.chunks) {
    chunks.push_back(
        {chunk.id, header.frames[chunk.frame].offset + chunk.frame_offset, chunk.raw_bytes});
  }
  return chunks;
}

Marks marks_of(const base::IdRuns& used, const Containers& containers) {
  Marks marks;
  for (const auto& [number, chunks] : containers) {
    Bitmap bitmap(chunks.size());
    bool any = false;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      bitmap[i] = used.contains(chunks[i].id);
      any = any || bitmap[i];
    }
    if (any) marks[number] = std::move(bitmap);
  }
  return marks;
}

std::uint64_t page_bytes(const meta::Txn& txn, meta::TableIndex table) {
  MDB_stat stat{};
  mdb_stat(txn.raw(), txn.env().table(table), &stat);
  return (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
}

/// Sizes of the files that hold containers.
struct FileBytes {
  std::uint64_t size = 0;
  std::uint64_t disk = 0;
};
FileBytes file_bytes(const std::string& repository) {
  FileBytes sum;
  for (const char* folder : {"/pool/active", "/series"}) {
    for (const auto& entry : fs::recursive_directory_iterator(repository + folder)) {
      struct ::stat found {};
      if (!entry.is_regular_file() || ::stat(entry.path().c_str(), &found) != 0) continue;
      sum.size += static_cast<std::uint64_t>(found.st_size);
      sum.disk += static_cast<std::uint64_t>(found.st_blocks) * 512;
    }
  }
  return sum;
}

void write_file(VersionWriter& version, const std::string& name,
                const std::vector<Content>& contents, const ContentSource& source) {
  NewFile regular;
  regular.mode = S_IFREG | 0644;
  const auto entry = must(version.create(kRootIno, name, regular));
  const auto file = must(version.open(entry.ino, true));
  std::vector<std::byte> piece;
  std::uint64_t at = 0;
  const auto write = [&] {
    must(file->write(at, piece));
    at += piece.size();
    piece.clear();
  };
  for (const auto content : contents) {
    const auto data = source.data_of(content);
    piece.insert(piece.end(), data.begin(), data.end());
    if (piece.size() >= kPieceBytes) write();
  }
  write();
}

}  // namespace

StoredPool::StoredPool(std::string directory, Rewrite rewrite) : directory_(std::move(directory)) {
  fs::remove_all(directory_);
  fs::create_directories(directory_);
  RepositoryParameters parameters;
  parameters.codec = Codec::kNone;
  parameters.placement = Placement::kPool;
  must(Repository::create(repository(), parameters));
  const auto opened = open_repository(repository());
  must(opened->create_series(kSeriesName, {Placement::kPool, rewrite}));
  must(opened->close());
}

StoredPool::~StoredPool() { fs::remove_all(directory_); }

void StoredPool::store(std::size_t versions, KindSource& source) {
  const auto opened = open_repository(repository());
  const auto series = must(opened->find_series(kSeriesName)).id;
  NewFile root;
  root.mode = S_IFDIR | 0755;
  for (std::size_t i = 0; i < versions; ++i) {
    if (i != 0) source.next_version();
    const auto version = must(opened->open_version(series, fmt::format("v{:03}", i), root));
    const auto writer = must(opened->writer(series));
    for (std::size_t file = 0; file < source.files().size(); ++file) {
      write_file(*writer, fmt::format("{:06}", file), source.files()[file], source);
    }
    logical_bytes_ += must(opened->seal(series, version.number, "")).info.logical_bytes;
  }
  must(opened->close());
}

PoolContent StoredPool::content() const {
  PoolReader pool(repository());
  PoolContent content;
  for (const auto& record : pool.containers()) {
    const auto header = must(pool.chunks().header(record.number));
    content.containers[static_cast<Container>(record.number)] = chunks_of(*header);
  }
  const auto txn = must(meta::ReadTxn::begin(pool.catalog()));
  must(catalog::for_each_pool_use(
      txn,
      [&](SeriesId series, VersionNumber number,
          const std::vector<catalog::PoolUse>& uses) -> Result<bool> {
        const auto used = must(catalog::version_chunks(txn, series, number));
        content.versions.push_back(marks_of(used, content.containers));
        content.use_bytes.push_back(meta::version_key(series, number).size() +
                                    catalog::encode_pool_use(uses).size() + kChecksumBytes);
        return true;
      }));
  must(meta::for_each_prefix(txn, meta::catalog::kPoolUsers, "",
                             [&](std::string_view key, std::string_view value) -> Result<bool> {
                               content.users_bytes += key.size() + value.size() + kChecksumBytes;
                               return true;
                             }));
  content.page_bytes =
      page_bytes(txn, meta::catalog::kPoolUse) + page_bytes(txn, meta::catalog::kPoolUsers);
  return content;
}

void StoredPool::read_containers(const Visit& visit) const {
  PoolReader pool(repository());
  std::vector<std::byte> data;
  for (const auto& record : pool.containers()) {
    data.resize(record.data_bytes);
    must(pool.chunks().read_data(record.number, 0, data));
    visit(static_cast<Container>(record.number), data);
  }
}

void StoredPool::keep() {
  fs::remove_all(kept());
  fs::copy(repository(), kept(), fs::copy_options::recursive);
}

void StoredPool::go_back() {
  fs::remove_all(repository());
  fs::copy(kept(), repository(), fs::copy_options::recursive);
}

PoolDeletionCost StoredPool::remove(const std::vector<std::size_t>& versions) {
  std::set<ContainerNumber> old;
  for (const auto& record : PoolReader(repository()).containers()) old.insert(record.number);
  PoolDeletionCost cost;
  std::vector<VersionNumber> numbers;
  SeriesId series{};
  {
    const auto opened = open_repository(repository());
    series = must(opened->find_series(kSeriesName)).id;
    const auto all = must(opened->versions(series));
    for (const auto version : versions) numbers.push_back(all.at(version).number);
    cost.forecast = must(opened->forecast_deletion(series, numbers)).freed_bytes;
    must(opened->close());
  }
  drop_cached(repository());
  const auto before = file_bytes(repository());
  {
    const CostMeter all;
    const auto opened = open_repository(repository());
    const CostMeter call;
    static_cast<void>(must(opened->delete_versions(series, numbers)));
    cost.call = call.cost();
    must(opened->close());
    cost.all = all.cost();
  }
  const auto after = file_bytes(repository());
  cost.freed = before.size - after.size;
  cost.disk_freed = before.disk - after.disk;
  for (const auto& record : PoolReader(repository()).containers()) {
    if (!old.contains(record.number)) cost.moved += record.raw_bytes;
    cost.left.insert(static_cast<Container>(record.number));
  }
  return cost;
}

}  // namespace varve::bench
