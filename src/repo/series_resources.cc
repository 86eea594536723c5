// SPDX-License-Identifier: Apache-2.0
#include "repo/series_resources.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>

#include "base/file_limit.h"
#include "ingest/parameters.h"

namespace varve::repo {

namespace {

// Enough for a restore with many segments open at once, and far from the usual hard limits.
constexpr std::size_t kOpenFilesMax = 512;
constexpr std::size_t kOpenFilesMin = 16;
constexpr std::size_t kOpenFilesShare = 8;  // Of the descriptors.
constexpr std::size_t kCheckpointThreadsMax = 8;
// Limits of open but unused overlays.
constexpr std::size_t kOverlaysMax = 64;
constexpr std::size_t kOverlaysMin = 2;
constexpr std::size_t kOverlaysShare = 64;

}  // namespace

SeriesResources::SeriesResources(RepositoryFolder& folder, const SettledState& settled_state,
                                 base::Metrics& metrics)
    : folder_(folder),
      settled_state_(settled_state),
      metrics_(metrics),
      space_(*folder.files, folder.paths.root()),
      open_files_(base::descriptors_for(kOpenFilesShare, kOpenFilesMin, kOpenFilesMax)) {}

Result<void> SeriesResources::start_reading() {
  const auto& parameters = folder_.superblock.parameters();
  VARVE_TRY_ASSIGN(chunker_,
                   ingest::make_chunker(parameters.chunker, ingest::chunk_sizes_of(parameters),
                                        folder_.codecs.keys().get()));
  restore::ReadOptions reading;
  reading.cache_bytes = folder_.options.cache_bytes;
  reading.engine = folder_.options.engine;
  VARVE_TRY_ASSIGN(read_service_, restore::make_read_service(reading, metrics_));
  DiskCosts::Parts costs;
  costs.series_directory = folder_.paths.all_series();
  // Measured without requests.
  costs.files = folder_.files.get();
  costs.catalog = &folder_.catalog;
  costs.clock = &folder_.clock;
  costs.service = read_service_.get();
  costs.read_only = folder_.options.read_only;
  disk_costs_ = std::make_unique<DiskCosts>(std::move(costs));
  return {};
}

void SeriesResources::start_writing() {
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  const unsigned wanted = folder_.options.ingest_threads;
  const unsigned threads = wanted != 0 ? wanted : cores;
  compressors_ = std::make_unique<base::ThreadPool>(cores, "varve-compress");
  fingerprint_pool_ = std::make_unique<base::ThreadPool>(threads, "varve-hash");
  checkpoint_tasks_ =
      std::make_unique<base::RecurringTasks>(kCheckpointThreadsMax, "varve-checkpt");
  overlays_ = std::make_shared<meta::EnvCache>(
      base::descriptors_for(kOverlaysShare, kOverlaysMin, kOverlaysMax));
}

void SeriesResources::lend_to(series::SeriesParts& parts) {
  parts.paths = &folder_.paths;
  parts.options = &folder_.options;
  parts.codecs = &folder_.codecs;
  parts.files = folder_.files.get();
  parts.catalog = &folder_.catalog;
  parts.clock = &folder_.clock;
  parts.space = &space_;
  parts.open_files = &open_files_;
  parts.pages = &pages_;
  parts.metrics = &series_metrics_;
  parts.damage = &damage_;
  parts.read_service = read_service_.get();
  parts.has_open_versions = !folder_.is_attached();
  parts.open_store = folder_.storage->opener();
  parts.writing.chunker = chunker_.get();
  parts.writing.compressors = compressors_.get();
  parts.writing.fingerprint_pool = fingerprint_pool_.get();
  parts.writing.checkpoint_tasks = checkpoint_tasks_.get();
  parts.writing.descriptors = &descriptors_;
  parts.writing.overlays = overlays_;
  parts.writing.checkpoint_bytes = folder_.storage->early_bytes();
  parts.writing.on_checkpoint = [this] { folder_.replication().upload_early(); };
}

Result<series::Pool*> SeriesResources::pool() {
  const std::lock_guard lock(pool_mutex_);
  if (!pool_) {
    series::PoolHost host;
    host.paths = &folder_.paths;
    host.files = folder_.files.get();
    host.catalog = &folder_.catalog;
    host.codec = &folder_.codecs.frames();
    host.compressors = compressors_.get();
    host.fingerprinter = &folder_.codecs.fingerprinter();
    host.open_files = &open_files_;
    host.space = &space_;
    host.metrics = &series_metrics_.layout;
    host.stream_metrics = &series_metrics_.streams;
    host.damage = &damage_;
    host.read_only = folder_.options.read_only;
    host.settled = settled_state_.was_settled();
    host.open_store = folder_.storage->opener();
    VARVE_TRY_ASSIGN(pool_, series::Pool::open(host));
  }
  return pool_.get();
}

series::Pool* SeriesResources::opened_pool() {
  const std::lock_guard lock(pool_mutex_);
  return pool_.get();
}

}  // namespace varve::repo
