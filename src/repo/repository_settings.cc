// SPDX-License-Identifier: Apache-2.0
// The settings of series: at the creation, and later changes. docs/decisions/057 gives the order of
// writes.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "catalog/series_settings.h"
#include "catalog/upkeep_record.h"
#include "meta/lmdb.h"
#include "repo/object_lock_setting.h"
#include "repo/repository_impl.h"
#include "series/pool.h"
#include "series/series_parts.h"
#include "series/version_records.h"

namespace varve::repo {

Result<SeriesSettings> RepositoryImpl::series_defaults() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_new_series_settings(txn, features_.initial_settings());
}

Result<SeriesSettings> RepositoryImpl::change_series_defaults(const SeriesOptions& changes) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  const SeriesSettings initial = features_.initial_settings();
  VARVE_TRY_ASSIGN(const auto present, catalog::find_new_series_settings(txn, initial));
  const SeriesSettings wanted = changed_settings(present, changes);
  if (wanted == present) return present;
  VARVE_TRY(check_series_settings(wanted));
  VARVE_TRY(features_.require_for(wanted));
  VARVE_TRY(catalog::put_new_series_settings(txn, wanted, initial));
  VARVE_TRY(txn.commit());
  features_.begin_labels();
  series_.write_all_labels();
  folder_.replicate_soon();
  return wanted;
}

Result<PoolIndexChoice> RepositoryImpl::pool_index() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_pool_index(txn);
}

// Only the catalog and the labels change: the files of an index are derived data.
Result<void> RepositoryImpl::set_pool_index(const PoolIndexChoice& choice) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY(check_pool_index(choice));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto present, catalog::find_pool_index(txn));
  if (choice == present) return {};
  VARVE_TRY(catalog::put_pool_index(txn, choice));
  VARVE_TRY(txn.commit());
  series_.write_all_labels();
  folder_.replicate_soon();
  return {};
}

Result<UpkeepSettings> RepositoryImpl::upkeep_settings() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_upkeep_settings(txn);
}

Result<void> RepositoryImpl::set_upkeep_settings(const UpkeepSettings& settings) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(const auto lock, object_lock_of(folder_.catalog));
  if (settings.object_lock != lock && !folder_.bucket) {
    return Error(ErrorCode::kInvalid, "only a repository in an object store can lock its objects");
  }
  // The store may take long, so the request comes before the transaction.
  if (settings.object_lock != lock) VARVE_TRY(folder_.bucket->allow_lock(settings.object_lock));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto present, catalog::find_upkeep_settings(txn));
  if (settings == present) return {};
  VARVE_TRY(catalog::put_upkeep_settings(txn, settings));
  VARVE_TRY(txn.commit());
  if (folder_.bucket) folder_.bucket->set_lock(settings.object_lock);
  series_.write_all_labels();
  folder_.replicate_soon();
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

}  // namespace varve::repo
