// SPDX-License-Identifier: Apache-2.0
// Opens and closes the repository; handles series and reading. repository_versions.cc handles
// versions.
#include "repo/repository_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

#include "base/log.h"
#include "catalog/location_table.h"
#include "catalog/names.h"
#include "io/posix_file_system.h"
#include "meta/probe.h"
#include "meta/schema.h"
#include "parity/group_files.h"
#include "repo/version_info.h"
#include "store/repository_names.h"

namespace varve::repo {

namespace {
constexpr std::size_t kSuperblockBytesMax = 64U << 10;
// Largest catalog that is probed at each opening. Probing it takes a fraction of a second
// (bench-catalog-probe).
constexpr std::uint64_t kProbedBytesMax = 256U << 20;

/// Returns true if a file that is not Varve's has the name of a series' folder.
bool is_file_in_place(io::FileSystem& files, const std::string& folder) {
  const auto names = files.list(folder);
  return !names && names.error().errno_value() == ENOTDIR;
}

Error advised(const Error& of_catalog) {
  return {of_catalog.code(), of_catalog.message() + "; run `varve repair`, which rebuilds it",
          of_catalog.errno_value()};
}

Error no_repository(const std::string& path) {
  return {ErrorCode::kNoRepository,
          path + " is not a Varve repository (it has no varve.repo); make one with `varve init`",
          ENOENT};
}

Error no_series() { return {ErrorCode::kNotFound, "no such series", ENOENT}; }
}  // namespace

RepositoryImpl::RepositoryImpl(std::string path, const OpenOptions& options,
                               format::Superblock superblock, std::unique_ptr<io::FileSystem> files,
                               std::unique_ptr<io::FileLock> lock, meta::Env catalog)
    : path_(std::move(path)),
      options_(options),
      superblock_(std::move(superblock)),
      files_(std::move(files)),
      lock_(std::move(lock)),
      catalog_(std::move(catalog)),
      space_(*files_, path_) {}

Result<std::unique_ptr<Repository>> RepositoryImpl::open(const std::string& path,
                                                         const OpenOptions& options) {
  auto opened = io::open_root(path, {.trust_owner = options.trust_owner});
  if (!opened) {
    const auto code = opened.error().code();
    if (code != ErrorCode::kNotFound && code != ErrorCode::kNotDirectory) {
      return std::move(opened).error();
    }
    return no_repository(path);
  }
  auto files = std::move(*opened);
  auto text = files->read_file(path + "/varve.repo", kSuperblockBytesMax);
  if (!text) {
    if (text.error().code() == ErrorCode::kNotFound || text.error().errno_value() == ENOTDIR) {
      return no_repository(path);
    }
    return std::move(text).error();
  }
  auto superblock = format::decode_superblock(*text);
  if (!superblock) return std::move(superblock).error().with_context(path + "/varve.repo");
  std::unique_ptr<io::FileLock> lock;
  if (!options.read_only) {
    auto locked = files->lock(path + "/lock");
    if (!locked) {
      if (locked.error().code() != ErrorCode::kLocked) return std::move(locked).error();
      return Error(ErrorCode::kLocked,
                   path +
                       " is in use by another process (mounted read-write, or a command is "
                       "running); read-only use is possible beside it",
                   EBUSY);
    }
    lock = std::move(*locked);
  }
  VARVE_TRY_ASSIGN(const bool has_catalog, files->exists(path + "/catalog/data.mdb"));
  if (!has_catalog) {
    return Error(ErrorCode::kCorrupt,
                 path + "/catalog is missing: run `varve repair`, which rebuilds it", ENOENT);
  }
  meta::EnvOptions env;
  env.tables = meta::catalog::kTables;
  env.read_only = options.read_only;
  env.must_exist = true;
  env.writer_lock = path + "/lock";
  VARVE_TRY(store::check_folders(*files, path));
  VARVE_TRY_ASSIGN(const auto catalog_bytes, files->tree_bytes(path + "/catalog/data.mdb"));
  VARVE_TRY_ASSIGN(const auto catalog_files, meta::EnvFiles::open(*files, path + "/catalog", env));
  if (options.probe_catalog || catalog_bytes <= kProbedBytesMax) {
    const auto probed = meta::probe_environment(catalog_files, env);
    if (!probed) return advised(probed.error());
  }
  auto catalog = meta::Env::open(catalog_files, env);
  if (!catalog) return std::move(catalog).error().with_context(path);
  std::unique_ptr<RepositoryImpl> repository(
      new RepositoryImpl(path, options, std::move(*superblock), std::move(files), std::move(lock),
                         std::move(*catalog)));
  VARVE_TRY(repository->start());
  repository->arrange_what_is_owed();
  return std::unique_ptr<Repository>(std::move(repository));
}

Result<void> RepositoryImpl::start() {
  const auto& parameters = superblock_.parameters;
  VARVE_TRY_ASSIGN(chunker_,
                   ingest::make_chunker(parameters.chunker,
                                        {parameters.chunk_bytes_min, parameters.chunk_bytes_avg,
                                         parameters.chunk_bytes_max}));
  restore::ReadOptions reading;
  reading.cache_bytes = options_.cache_bytes;
  reading.engine = options_.engine;
  VARVE_TRY_ASSIGN(read_service_, restore::make_read_service(reading));
  DiskCosts::Parts costs;
  costs.series_directory = path_ + "/series";
  costs.files = files_.get();
  costs.catalog = &catalog_;
  costs.clock = &clock_;
  costs.service = read_service_.get();
  costs.read_only = options_.read_only;
  disk_costs_ = std::make_unique<DiskCosts>(std::move(costs));
  if (options_.read_only) return {};
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  const unsigned threads = options_.ingest_threads != 0 ? options_.ingest_threads : cores;
  compressors_ = std::make_unique<base::ThreadPool>(cores, "varve-compress");
  fingerprint_pool_ = std::make_unique<base::ThreadPool>(threads, "varve-hash");

  VARVE_TRY(check_catalog_age());
  // A crash leaves staging folders of versions that are no longer open, and unfinished copies of
  // older versions.
  std::vector<std::string> wanted;
  std::vector<catalog::VersionRecord> unfinished;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
    for (const auto& series : all) {
      VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
      for (const auto& record : records) {
        if (record.unfinished) {
          unfinished.push_back(record);
        } else if (record.state == VersionState::kOpen) {
          wanted.push_back(store::staging_name(series.id, record.number));
        }
      }
    }
  }
  if (!unfinished.empty()) {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
    for (const auto& record : unfinished) {
      VARVE_TRY(catalog::erase_version(txn, record.series, record.number));
    }
    VARVE_TRY(txn.commit());  // drop_leftovers() frees their chunks.
  }
  VARVE_TRY(files_->make_durable_directory(path_ + "/staging"));
  VARVE_TRY(remove_leftover_staging(wanted));
  VARVE_TRY(complete_manifests());
  space_.keep_reserve();
  return {};
}

RepositoryImpl::~RepositoryImpl() {
  stop_arranging();
  disk_costs_.reset();
  for (auto& [id, state] : states_) {
    if (state->open) state->open->stop();
    state->open.reset();
  }
  read_service_.reset();  // Its threads may still read through the layouts.
}

Result<void> RepositoryImpl::sync() {
  std::vector<SeriesState*> states;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, state] : states_) states.push_back(state.get());
  }
  std::optional<Error> first;
  std::string all;
  for (auto* state : states) {
    const std::lock_guard lock(state->mutex);
    if (!state->open) continue;
    const auto synced = state->open->sync();
    if (synced) continue;
    const auto info = state->open->info();
    const auto unsaved = state->open->unsaved();
    all += fmt::format("{}{}/{}: {}; {} changed entries and {} bytes of contents are not on disk",
                       all.empty() ? "" : "\n", info.series_name, info.name,
                       synced.error().message(), unsaved.entries, unsaved.bytes);
    if (!first) first = synced.error();
  }
  if (!first) return {};
  return Error(first->code(), all, first->errno_value());
}

Result<void> RepositoryImpl::close() {
  stop_arranging();
  auto synced = sync();
  for (auto& [id, state] : states_) {
    const std::lock_guard lock(state->mutex);
    if (state->open) state->open->stop();
  }
  if (disk_costs_) disk_costs_->on_close();
  if (synced) return {};
  return std::move(synced).error().with_context(path_ + ": lost at the end");
}

std::string RepositoryImpl::series_directory(SeriesId series) const {
  return fmt::format("{}/series/{:08x}", path_, static_cast<std::uint32_t>(series));
}

std::string RepositoryImpl::staging_directory(SeriesId series, VersionNumber number) const {
  return path_ + "/staging/" + store::staging_name(series, number);
}

Result<void> RepositoryImpl::remove_staging(const catalog::VersionRecord& record) {
  return store::remove_folder(*files_, staging_directory(record.series, record.number),
                              store::FolderKind::kOpenVersion);
}

Result<void> RepositoryImpl::remove_leftover_staging(const std::vector<std::string>& wanted) {
  const auto staging = path_ + "/staging";
  VARVE_TRY_ASSIGN(const auto names, files_->list(staging));
  for (const auto& name : names) {
    const bool is_ours = store::parse_staging_name(name).has_value();
    if (!is_ours || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) continue;
    VARVE_TRY(store::remove_folder(*files_, std::string(staging).append("/" + name),
                                   store::FolderKind::kOpenVersion));
  }
  return {};
}

Result<void> RepositoryImpl::check_writable() const {
  if (options_.read_only) {
    return Error(ErrorCode::kReadOnly, "the repository is open read-only", EROFS);
  }
  return {};
}

Result<RepositoryImpl::SeriesState*> RepositoryImpl::state(SeriesId series) {
  const std::lock_guard lock(mutex_);
  auto& slot = states_[series];
  if (!slot) {
    auto fresh = std::make_unique<SeriesState>();
    layout::CategoryLayoutOptions options;
    options.series = series;
    options.series_directory = series_directory(series);
    options.read_only = options_.read_only;
    options.codec = superblock_.parameters.codec;
    options.zstd_level = superblock_.parameters.zstd_level;
    auto layout = layout::CategoryLayout::open(catalog_, *files_, compressors_.get(), options);
    if (!layout) {
      states_.erase(series);
      return std::move(layout).error();
    }
    fresh->layout = std::move(*layout);
    fresh->objects = std::make_unique<catalog::ObjectReader>(catalog_, series);
    slot = std::move(fresh);
  }
  return slot.get();
}

Result<std::vector<SeriesInfo>> RepositoryImpl::series() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_series(txn));
  std::vector<SeriesInfo> all;
  for (const auto& record : records) all.push_back({record.id, record.name, record.created_at});
  return all;
}

Result<SeriesInfo> RepositoryImpl::find_series(std::string_view name) {
  VARVE_TRY_ASSIGN(const auto all, series());
  for (const auto& info : all) {
    if (info.name == name) return info;
  }
  return no_series();
}

Result<catalog::SeriesRecord> RepositoryImpl::series_record(SeriesId id) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto record, catalog::find_series(txn, id));
  if (!record) return no_series();
  return std::move(*record);
}

std::string RepositoryImpl::present_path() {
  auto now = files_->root_path();
  const std::lock_guard lock(mutex_);
  if (!now) return seen_path_.empty() ? path_ : seen_path_;
  if (!seen_path_.empty() && seen_path_ != *now) {
    base::log(base::LogLevel::kWarning,
              fmt::format("the repository was moved from {} to {}; commands must name the new path",
                          seen_path_, *now));
  }
  seen_path_ = *now;
  return *std::move(now);
}

Result<SeriesInfo> RepositoryImpl::create_series(std::string_view name) {
  VARVE_TRY(check_writable());
  VARVE_TRY(catalog::check_series_name(name));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  catalog::SeriesRecord record;
  std::uint32_t id = 1;
  for (const auto& other : all) {
    if (other.name == name) return Error(ErrorCode::kExists, "the series is there", EEXIST);
    id = std::max(id, static_cast<std::uint32_t>(other.id) + 1);
  }
  {
    const std::lock_guard lock(mutex_);
    id = std::max(id, next_series_);
    while (is_file_in_place(*files_, series_directory(static_cast<SeriesId>(id)))) ++id;
    next_series_ = id + 1;
  }
  record.id = static_cast<SeriesId>(id);
  record.name = name;
  record.created_at = clock_.now();
  VARVE_TRY(catalog::put_series(txn, record));
  VARVE_TRY(txn.commit());
  sync_labels(record.id);
  return SeriesInfo{record.id, record.name, record.created_at};
}

Result<void> RepositoryImpl::remove_series(std::string_view name) {
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(const auto info, find_series(name));
  VARVE_TRY_ASSIGN(auto* memory, state(info.id));
  const std::lock_guard lock(memory->mutex);
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, info.id));
  if (!records.empty()) {
    return Error(ErrorCode::kNotEmpty, "the series still has versions", ENOTEMPTY);
  }
  VARVE_TRY(catalog::erase_series(txn, info.id));
  VARVE_TRY(txn.commit());
  return store::remove_folder(*files_, series_directory(info.id), store::FolderKind::kSeries);
}

Result<RepositoryStats> RepositoryImpl::stats() {
  RepositoryStats stats;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  stats.series = all.size();
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
    for (const auto& record : records) {
      const bool sealed = record.state == VersionState::kSealed;
      stats.versions_sealed += sealed ? 1 : 0;
      stats.versions_open += sealed ? 0 : 1;
      stats.logical_bytes += sealed ? record.logical_bytes : 0;
      const auto snapshot =
          series_directory(series.id) + "/" + index::NeighbourIndex::snapshot_name(record.number);
      VARVE_TRY_ASSIGN(const bool present, files_->exists(snapshot));
      if (!present) continue;
      VARVE_TRY_ASSIGN(const auto bytes, files_->tree_bytes(snapshot));
      stats.index_bytes += bytes;
    }
    const auto parity = series_directory(series.id) + "/" + parity::kGroupFolder;
    VARVE_TRY_ASSIGN(const bool has_parity, files_->exists(parity));
    if (has_parity) {
      VARVE_TRY_ASSIGN(const auto bytes, files_->tree_bytes(parity));
      stats.parity_bytes += bytes;
    }
    VARVE_TRY(catalog::for_each_container(
        txn, series.id, [&](const store::ContainerRecord& record) -> Result<bool> {
          ++stats.containers;
          stats.unique_bytes += record.live_bytes;
          stats.frame_bytes += record.data_bytes;
          stats.container_bytes += record.end() - record.offset;
          return true;
        }));
    VARVE_TRY(catalog::for_each_location(
        txn, series.id, ChunkId{}, [&](const catalog::LocationRecord& record) -> Result<bool> {
          stats.chunks += record.count;
          return true;
        }));
  }
  VARVE_TRY_ASSIGN(stats.catalog_bytes, files_->tree_bytes(path_ + "/catalog"));
  VARVE_TRY_ASSIGN(const bool staging, files_->exists(path_ + "/staging"));
  if (staging) {
    VARVE_TRY_ASSIGN(stats.staging_bytes, files_->tree_bytes(path_ + "/staging"));
  }
  return stats;
}

Result<SpaceInfo> RepositoryImpl::space() { return files_->space(path_); }

}  // namespace varve::repo
