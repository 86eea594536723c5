// SPDX-License-Identifier: Apache-2.0
// Starts and closes the repository.
#include "repo/repository_impl.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "catalog/number_gap.h"
#include "catalog/series_catalog.h"
#include "maintain/manifest_file.h"
#include "meta/compaction.h"
#include "meta/page_use.h"
#include "meta/schema.h"
#include "series/pool.h"
#include "series/usage.h"

namespace varve::repo {

RepositoryImpl::RepositoryImpl(OpenedFolder opened) : folder_(std::move(opened)) {
  folder_.catalog.count_reads(catalog_metrics_.records_read);
}

Result<void> RepositoryImpl::start() {
  VARVE_TRY(resources_.start_reading());
  VARVE_TRY_ASSIGN(const bool is_older, sequence_memory_.compare());  // Before anything is written.
  VARVE_TRY(key_ring_.check_counter());
  // Refuses a series of a newer Varve before anything is written.
  const auto all = series_.list();
  if (!all && all.error().code() == ErrorCode::kUnsupported) return all.error();
  if (folder_.options.read_only) {
    settled_state_.warn_of_older_catalog();
    sequence_memory_.remember_present();
    return {};
  }
  arranging_.start();
  if (all) features_.complete(*all);
  resources_.start_writing();

  VARVE_TRY_ASSIGN(auto note, settled_state_.read_note());
  arranging_.add_unarranged(note.unarranged);
  // Before anything is removed: an older catalog would mistake new data for leftovers.
  VARVE_TRY(settled_state_.check_catalog_age());
  if (is_older) {  // The user accepted the older state.
    const auto left = catalog::leave_random_gap(folder_.catalog);
    if (!left) base::log(base::LogLevel::kWarning, "numbers: " + left.error().message());
    VARVE_TRY_ASSIGN(note, settled_state_.read_note());
    arranging_.add_unarranged(note.unarranged);
  }
  VARVE_TRY_ASSIGN(const bool has_pool, series::pool_has_containers(folder_.catalog));
  // Before any version is loaded: the pool then looks at the files of open versions.
  if (has_pool) VARVE_TRY(resources_.pool());
  VARVE_TRY(settle_at_opening());
  quarantine_.settle_recorded();
  if (!settled_state_.leaves_work()) sequence_memory_.remember_present();
  resources_.space().keep_reserve();
  remote::WrittenRepository written;
  written.catalog = &folder_.catalog;
  written.id = folder_.superblock.repository_id();
  written.keys = folder_.codecs.keys();
  written.space = &resources_.space();
  sequence_memory_.watch(written);
  return folder_.storage->begin_writing(std::move(written));
}

Result<void> RepositoryImpl::settle_at_opening() {
  if (!settled_state_.leaves_work()) return {};
  settled_state_.set_leaves_work(false);  // Until a step, or a series during a step, fails.
  VARVE_TRY_ASSIGN(const bool complete, settled_state_.complete_catalog());
  VARVE_TRY_ASSIGN(const auto all, series_.list());
  // A new repository has no note yet.
  if (all.empty()) arranging_.add_unarranged(std::set<SeriesId>());
  VARVE_TRY_ASSIGN(const bool has_manifests, series_.complete_manifests());
  if (!complete || !has_manifests) settled_state_.set_leaves_work(true);
  return {};
}

void RepositoryImpl::settle_at_close() {
  if (features_.labels_lack_any()) return;
  if (auto* const shared = resources_.opened_pool(); shared != nullptr && shared->has_left_behind())
    return;
  settled_state_.write_note(arranging_.unarranged());
}

RepositoryImpl::~RepositoryImpl() {
  arranging_.stop();
  if (folder_.options.read_only) quarantine_.keep_found();
  folder_.storage->stop();
  resources_.stop();
  series_.release();
  resources_.end_reads();
}

Result<void> RepositoryImpl::end_work() {
  arranging_.stop();
  quarantine_.keep_found();
  auto synced = series_.sync();
  series_.stop();
  if (auto* const costs = resources_.disk_costs()) costs->on_close();
  settle_at_close();
  if (synced) return {};
  return std::move(synced).error().with_context(folder_.paths.root() + ": lost at the end");
}

// Waits for no series if no write has failed.
Result<void> RepositoryImpl::write_left_files() {
  return settled_state_.leaves_work() ? series_.write_left_files() : Result<void>();
}

Result<void> RepositoryImpl::close() {
  if (folder_.catalog_replaced) return {};
  const auto ended = end_work();
  sequence_memory_.settle();
  VARVE_TRY(ended);
  if (folder_.options.read_only) return {};
  auto left = write_left_files();
  const auto replicated = folder_.end_replication();
  sequence_memory_.settle();
  VARVE_TRY(replicated);
  const auto wasteful = meta::wastes_space(folder_.catalog);
  if (!wasteful || !*wasteful) return left;
  folder_.catalog_replaced = true;
  const auto compacted = meta::compact(folder_.catalog, *folder_.files, meta::catalog::kTables);
  if (!compacted) {
    const bool later = compacted.error().code() == ErrorCode::kBusy;
    base::log(later ? base::LogLevel::kDebug : base::LogLevel::kWarning,
              compacted.error().message());
  }
  return left;
}

Result<CatalogCompaction> RepositoryImpl::compact_catalog() {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY(end_work());
  VARVE_TRY(folder_.end_replication());
  folder_.catalog_replaced = true;
  return meta::compact(folder_.catalog, *folder_.files, meta::catalog::kTables);
}

Result<void> RepositoryImpl::renew_key() {
  base::log(base::LogLevel::kInfo, folder_.paths.catalog() + ": all values are encrypted again");
  VARVE_TRY(end_work());
  VARVE_TRY(folder_.end_replication());
  const meta::DerivedTable names{meta::catalog::kNames, catalog::rebuild_names};
  const auto renewed =
      meta::renew_key(folder_.catalog, *folder_.files, meta::catalog::kTables, names);
  folder_.catalog_replaced = true;
  // The old key has room for as many texts again.
  if (!renewed) base::log(base::LogLevel::kWarning, renewed.error().message());
  return {};
}

Result<void> RepositoryImpl::require_aliases() {
  VARVE_TRY_ASSIGN(const bool is_new, features_.require_aliases());
  if (!is_new) return {};
  features_.begin_labels();
  series_.write_all_labels();
  return {};
}

Result<std::vector<PoolStream>> RepositoryImpl::pool_streams() {
  series::Pool* const pool = resources_.opened_pool();
  if (pool == nullptr) return std::vector<PoolStream>();
  auto streams = pool->streams();
  VARVE_TRY_ASSIGN(const auto all, series_.list());
  for (PoolStream& stream : streams) {
    const auto its = std::ranges::find(all, stream.series, &SeriesInfo::id);
    if (its != all.end()) stream.name = its->name;
  }
  return streams;
}

Result<void> RepositoryImpl::set_arrange_settings(const ArrangeSettings& settings) {
  VARVE_TRY(settings_.set_arrange_settings(settings));
  arranging_.expect_any();  // New settings may mean new work.
  return {};
}

std::string RepositoryImpl::present_path() {
  auto now = folder_.files->root_path();
  const std::lock_guard lock(path_mutex_);
  if (!now) return seen_path_.empty() ? folder_.paths.root() : seen_path_;
  if (!seen_path_.empty() && seen_path_ != *now) {
    base::log(base::LogLevel::kWarning, "the repository was moved from " + seen_path_ + " to " +
                                            *now + "; commands must name the new path");
  }
  seen_path_ = *now;
  return *std::move(now);
}

Result<RepositoryStats> RepositoryImpl::stats() {
  RepositoryStats stats;
  const auto bytes_if_present = [this](const std::string& path) -> Result<std::uint64_t> {
    VARVE_TRY_ASSIGN(const bool present, folder_.files->exists(path));
    return present ? folder_.files->tree_bytes(path) : Result<std::uint64_t>(0);
  };
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  stats.series = all.size();
  for (const auto& record : all) {
    VARVE_TRY_ASSIGN(auto* const one, series_.find(record.id));
    VARVE_TRY(series::add_stats(one->parts(), txn, stats));
    for (const char* name : {maintain::kManifestFolder, maintain::kLabelsName}) {
      VARVE_TRY_ASSIGN(const auto bytes,
                       bytes_if_present(folder_.paths.series(record.id) + "/" + name));
      stats.manifest_bytes += bytes;
    }
  }
  VARVE_TRY(series::add_pool_stats(txn, *folder_.files, folder_.paths.pool(), stats));
  VARVE_TRY_ASSIGN(const auto pages, meta::page_use(folder_.catalog));
  stats.catalog_free_bytes = pages.free;
  VARVE_TRY_ASSIGN(stats.reserve_bytes, bytes_if_present(folder_.paths.root() + "/reserve"));
  VARVE_TRY_ASSIGN(stats.repository_bytes, folder_.files->tree_bytes(folder_.paths.root()));
  VARVE_TRY_ASSIGN(stats.catalog_bytes, folder_.files->tree_bytes(folder_.paths.catalog()));
  VARVE_TRY_ASSIGN(stats.staging_bytes, bytes_if_present(folder_.paths.all_staging()));
  VARVE_TRY_ASSIGN(const auto changes, sequence());
  stats.sequence = changes.value_or(0);
  return stats;
}

Result<SpaceInfo> RepositoryImpl::space() { return folder_.files->space(folder_.paths.root()); }

}  // namespace varve::repo
