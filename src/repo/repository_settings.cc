// SPDX-License-Identifier: Apache-2.0
// The settings of series: at the creation, and later changes. docs/decisions/057 gives the order of
// writes.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "catalog/alias_table.h"
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
#include "store/repository_names.h"
#include "varve/version_name.h"

namespace varve::repo {

namespace {

/// Returns true if a foreign file has the name of a series' folder.
bool is_file_in_place(io::FileSystem& files, const std::string& folder) {
  const auto names = files.list(folder);
  return !names && names.error().code() == ErrorCode::kNotDirectory;
}

SeriesSettings changed(const SeriesSettings& present, const SeriesOptions& changes) {
  return {changes.placement.value_or(present.placement), changes.rewrite.value_or(present.rewrite)};
}

/// `what` names the change in the error.
Result<void> check_none_is_open(const meta::Txn& txn, const catalog::SeriesRecord& series,
                                const char* what) {
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series.id));
  const auto open =
      std::ranges::find(versions, VersionState::kOpen, &catalog::VersionRecord::state);
  if (open == versions.end()) return {};
  return Error(ErrorCode::kBusy,
               fmt::format("the {2} of {0} cannot change while {0}/{1} is open; seal that "
                           "version first with `varve seal`, or discard it with `varve rm`",
                           series.name, open->name, what));
}

Result<void> check_settings(const SeriesSettings& settings) {
  VARVE_TRY(check_placement(settings.placement));
  return check_rewrite(settings.rewrite);
}

}  // namespace

SeriesSettings RepositoryImpl::initial_series_settings() const {
  return {folder_.superblock.parameters().placement, Rewrite::kNone};
}

// An older Varve takes a record with pool settings for damage. So the superblock on disk names the
// feature before the record is committed. The caller has begun a transaction: the note of a settled
// repository is void, and an opening after a crash compares all labels with the superblock.
Result<void> RepositoryImpl::require_feature_for(const SeriesSettings& settings) {
  if (!catalog::needs_pool_feature(settings) || folder_.superblock.needs_pool()) return {};
  labels_lack_feature_ = true;  // Also after a failure, because the file may have changed.
  return folder_.superblock.require_pool();
}

// As for `pool`, the name of the feature is on disk before any record needs the feature
// (decisions/057).
Result<void> RepositoryImpl::require_aliases() {
  if (folder_.superblock.needs_aliases()) return {};
  VARVE_TRY(folder_.catalog.prepare_write());
  labels_lack_feature_ = true;
  VARVE_TRY(folder_.superblock.require_aliases());
  labels_lack_feature_ = false;
  write_all_labels();
  return {};
}

// A repository of an earlier Varve gets the feature `marks` from the first writer, whose records
// need `marks`. The names `pool` and `pool-aliases` are missing if a lost superblock was repaired
// from labels that a crash had left without the names.
void RepositoryImpl::complete_superblock(const std::vector<SeriesInfo>& all) {
  const bool needed = catalog::needs_pool_feature(initial_series_settings()) ||
                      std::ranges::any_of(all, [](const SeriesInfo& info) {
                        return catalog::needs_pool_feature({info.placement, info.rewrite});
                      });
  const auto complete = [&]() -> Result<void> {
    bool has_aliases = false;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
      VARVE_TRY(catalog::for_each_alias(txn, [&](const catalog::AliasRecord&) -> Result<bool> {
        has_aliases = true;
        return false;
      }));
    }
    const bool lacks_pool = needed && !folder_.superblock.needs_pool();
    const bool lacks_aliases = has_aliases && !folder_.superblock.needs_aliases();
    const bool lacks_marks = !folder_.superblock.needs_marks();
    if (!lacks_pool && !lacks_aliases && !lacks_marks) return {};
    VARVE_TRY(folder_.settled.clear());
    if (lacks_marks) VARVE_TRY(folder_.superblock.require_marks());
    if (lacks_pool) VARVE_TRY(folder_.superblock.require_pool());
    return lacks_aliases ? folder_.superblock.require_aliases() : Result<void>();
  };
  const auto done = complete();
  if (!done)
    base::log(base::LogLevel::kWarning, folder_.paths.superblock() + ": " + done.error().message());
}

void RepositoryImpl::write_all_labels() {
  const auto all = series();
  if (!all) {
    settled_state_.set_leaves_work(true);
    return;
  }
  for (const auto& info : *all) {
    const auto one = find(info.id);
    if (one) {
      (*one)->write_labels();
    } else {
      settled_state_.set_leaves_work(true);
    }
  }
}

// Labels have a copy of the superblock and of the series' record.
void RepositoryImpl::write_labels_after_change(SeriesId id) {
  if (labels_lack_feature_.exchange(false)) return write_all_labels();
  const auto one = find(id);
  if (one) (*one)->write_labels();
}

Result<SeriesInfo> RepositoryImpl::create_series(std::string_view name,
                                                 const SeriesOptions& options) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY(check_series_name(name));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto defaults,
                   catalog::find_new_series_settings(txn, initial_series_settings()));
  const SeriesSettings settings = changed(defaults, options);
  VARVE_TRY(check_settings(settings));
  VARVE_TRY_ASSIGN(const auto known, catalog::find_series_named(txn, name));
  if (known) return Error(ErrorCode::kExists, "the series exists already");
  VARVE_TRY_ASSIGN(const auto last, catalog::last_series(txn));
  catalog::SeriesRecord record;
  auto id = static_cast<std::uint32_t>(last) + 1;
  {
    const std::lock_guard lock(mutex_);
    id = std::max(id, next_series_);
    while (is_file_in_place(*folder_.files, folder_.paths.series(static_cast<SeriesId>(id)))) ++id;
    next_series_ = id + 1;
  }
  record.id = static_cast<SeriesId>(id);
  record.name = name;
  record.created_at = folder_.clock.now();
  record.placement = settings.placement;
  record.rewrite = settings.rewrite;
  VARVE_TRY(require_feature_for(settings));
  VARVE_TRY(catalog::put_series(txn, record));
  VARVE_TRY(txn.commit());
  write_labels_after_change(record.id);
  return catalog::info_of(record);
}

Result<SeriesSettings> RepositoryImpl::change_series(SeriesId id, const SeriesOptions& changes) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(auto record, catalog::find_series(txn, id));
  if (!record) return series::no_series();
  const SeriesSettings present = catalog::settings_of(*record);
  const SeriesSettings wanted = changed(present, changes);
  if (wanted == present) return present;
  // An open version uses the placement of the series at the opening.
  if (wanted.placement != present.placement) {
    VARVE_TRY(check_none_is_open(txn, *record, "placement"));
  }
  VARVE_TRY(check_settings(wanted));
  VARVE_TRY(require_feature_for(wanted));
  record->placement = wanted.placement;
  record->rewrite = wanted.rewrite;
  VARVE_TRY(catalog::put_series(txn, *record));
  VARVE_TRY(txn.commit());
  write_labels_after_change(id);
  return wanted;
}

Result<void> RepositoryImpl::rename_series(SeriesId id, std::string_view new_name) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY(check_series_name(new_name));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(auto record, catalog::find_series(txn, id));
  if (!record) return series::no_series();
  if (record->name == new_name) return {};
  VARVE_TRY_ASSIGN(const auto known, catalog::find_series_named(txn, new_name));
  if (known) return Error(ErrorCode::kExists, "a series of this name exists already");
  // The open version keeps the name for its messages.
  VARVE_TRY(check_none_is_open(txn, *record, "name"));
  record->name = new_name;
  VARVE_TRY(catalog::put_series(txn, *record));
  VARVE_TRY(txn.commit());
  write_labels_after_change(id);
  return {};
}

Result<SeriesSettings> RepositoryImpl::series_defaults() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_new_series_settings(txn, initial_series_settings());
}

Result<SeriesSettings> RepositoryImpl::change_series_defaults(const SeriesOptions& changes) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  const SeriesSettings initial = initial_series_settings();
  VARVE_TRY_ASSIGN(const auto present, catalog::find_new_series_settings(txn, initial));
  const SeriesSettings wanted = changed(present, changes);
  if (wanted == present) return present;
  VARVE_TRY(check_settings(wanted));
  VARVE_TRY(require_feature_for(wanted));
  VARVE_TRY(catalog::put_new_series_settings(txn, wanted, initial));
  VARVE_TRY(txn.commit());
  labels_lack_feature_ = false;
  write_all_labels();
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
  write_all_labels();
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
  write_all_labels();
  folder_.replicate_soon();
  return {};
}

Result<std::vector<PoolStream>> RepositoryImpl::pool_streams() {
  series::Pool* const pool = resources_.opened_pool();
  if (pool == nullptr) return std::vector<PoolStream>();
  auto streams = pool->streams();
  VARVE_TRY_ASSIGN(const auto all, series());
  for (PoolStream& stream : streams) {
    const auto its = std::ranges::find(all, stream.series, &SeriesInfo::id);
    if (its != all.end()) stream.name = its->name;
  }
  return streams;
}

}  // namespace varve::repo
