// SPDX-License-Identifier: Apache-2.0
#include "repo/series_table.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "catalog/series_catalog.h"
#include "catalog/series_settings.h"
#include "maintain/manifest_file.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "repo/beside_table.h"
#include "repo/required_features.h"
#include "repo/series_resources.h"
#include "repo/settled_state.h"
#include "series/manifests.h"
#include "series/series_parts.h"
#include "series/version_records.h"
#include "varve/version_name.h"

namespace varve::repo {

namespace {

/// Returns true if a foreign file has the name of a series' folder.
bool is_file_in_place(io::FileSystem& files, const std::string& folder) {
  const auto names = files.list(folder);
  return !names && names.error().code() == ErrorCode::kNotDirectory;
}

/// `what` names the change in the error.
Result<void> check_none_is_open(const meta::Txn& txn, const catalog::SeriesRecord& series,
                                const char* what) {
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series.id));
  const auto open =
      std::ranges::find(versions, VersionState::kOpen, &catalog::VersionRecord::state);
  if (open == versions.end()) return {};
  return Error(ErrorCode::kBusy,
               "the " + std::string(what) + " of " + series.name + " cannot change while " +
                   series.name + "/" + open->name +
                   " is open; seal that version first with `varve seal`, or discard it with "
                   "`varve rm`");
}

}  // namespace

SeriesSettings changed_settings(const SeriesSettings& present, const SeriesOptions& changes) {
  return {changes.placement.value_or(present.placement), changes.rewrite.value_or(present.rewrite)};
}

Result<void> check_series_settings(const SeriesSettings& settings) {
  VARVE_TRY(check_placement(settings.placement));
  return check_rewrite(settings.rewrite);
}

Result<std::vector<SeriesInfo>> SeriesTable::list() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_series(txn));
  std::vector<SeriesInfo> all;
  for (const auto& record : records) all.push_back(catalog::info_of(record));
  return all;
}

Result<SeriesInfo> SeriesTable::find_named(std::string_view name) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto record, catalog::find_series_named(txn, name));
  if (!record) return series::no_series();
  return catalog::info_of(*record);
}

Result<series::Series*> SeriesTable::find(SeriesId id) {
  const std::lock_guard lock(mutex_);
  const auto known = series_.find(id);
  if (known != series_.end()) return known->second.get();
  series::SeriesParts parts;
  parts.id = id;
  parts.store = catalog::store_of(id);
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
    VARVE_TRY_ASSIGN(const auto record, catalog::find_series(txn, id));
    if (!record) return series::no_series();
  }
  resources_.lend_to(parts);
  parts.host = &host_;
  return (series_[id] = std::make_unique<series::Series>(parts)).get();
}

Result<std::shared_ptr<BesideFiles>> SeriesTable::beside(SeriesId series) {
  VARVE_TRY(find(series));
  const std::lock_guard lock(mutex_);
  auto& table = beside_[series];
  if (table == nullptr) {
    table =
        std::make_shared<BesideTable>(BesideTable::Place{.files = *folder_.files,
                                                         .clock = folder_.clock,
                                                         .series = series,
                                                         .directory = folder_.paths.series(series),
                                                         .read_only = folder_.options.read_only});
  }
  return std::shared_ptr<BesideFiles>(table);
}

Result<SeriesInfo> SeriesTable::create(std::string_view name, const SeriesOptions& options) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY(check_series_name(name));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto defaults,
                   catalog::find_new_series_settings(txn, features_.initial_settings()));
  const SeriesSettings settings = changed_settings(defaults, options);
  VARVE_TRY(check_series_settings(settings));
  VARVE_TRY_ASSIGN(const auto known, catalog::find_series_named(txn, name));
  if (known) return Error(ErrorCode::kExists, "the series exists already");
  VARVE_TRY_ASSIGN(const auto last, catalog::last_series(txn));
  catalog::SeriesRecord record;
  if (static_cast<std::uint32_t>(last) >= UINT32_MAX - 1) {
    return Error(ErrorCode::kTooLarge, "no number is left for a series; run `varve check`");
  }
  auto id = static_cast<std::uint32_t>(last) + 1;
  {
    const std::lock_guard lock(mutex_);
    id = std::max(id, next_id_);
    while (is_file_in_place(*folder_.files, folder_.paths.series(static_cast<SeriesId>(id)))) ++id;
    next_id_ = id + 1;
  }
  record.id = static_cast<SeriesId>(id);
  record.name = name;
  record.created_at = folder_.clock.now();
  record.placement = settings.placement;
  record.rewrite = settings.rewrite;
  VARVE_TRY(features_.require_for(settings));
  VARVE_TRY(catalog::put_series(txn, record));
  VARVE_TRY(txn.commit());
  write_labels_after_change(record.id);
  return catalog::info_of(record);
}

Result<SeriesSettings> SeriesTable::change(SeriesId id, const SeriesOptions& changes) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(auto record, catalog::find_series(txn, id));
  if (!record) return series::no_series();
  const SeriesSettings present = catalog::settings_of(*record);
  const SeriesSettings wanted = changed_settings(present, changes);
  if (wanted == present) return present;
  // An open version uses the placement of the series at the opening.
  if (wanted.placement != present.placement) {
    VARVE_TRY(check_none_is_open(txn, *record, "placement"));
  }
  VARVE_TRY(check_series_settings(wanted));
  VARVE_TRY(features_.require_for(wanted));
  record->placement = wanted.placement;
  record->rewrite = wanted.rewrite;
  VARVE_TRY(catalog::put_series(txn, *record));
  VARVE_TRY(txn.commit());
  write_labels_after_change(id);
  folder_.replication().changed();
  return wanted;
}

Result<void> SeriesTable::rename(SeriesId id, std::string_view new_name) {
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
  folder_.replication().changed();
  return {};
}

void SeriesTable::write_all_labels() {
  const auto all = list();
  if (!all) {
    settled_state_.set_leaves_work(true);
    return;
  }
  for (const auto& info : *all) {
    const auto one = find(info.id);
    if (one) {
      (*one)->manifests().labels().rewrite();
    } else {
      settled_state_.set_leaves_work(true);
    }
  }
}

// Labels have a copy of the superblock and of the series' record.
void SeriesTable::write_labels_after_change(SeriesId id) {
  if (features_.begin_labels()) return write_all_labels();
  const auto one = find(id);
  if (one) (*one)->manifests().labels().rewrite();
}

Result<bool> SeriesTable::complete_manifests() {
  bool complete = true;
  VARVE_TRY_ASSIGN(const auto all, list());
  for (const auto& info : all) {
    VARVE_TRY_ASSIGN(auto* const one, find(info.id));
    // A failure is only logged: the repository works without manifests, and deletions must work on
    // a full disk.
    const auto done = one->manifests().complete();
    complete = complete && done;
    if (!done) base::log(base::LogLevel::kWarning, "manifests: " + done.error().message());
  }
  if (!all.empty()) {
    // Labels in agreement keep their stamp, and the stamp may be older than the last writer's
    // removals of files. A new stamp in any label identifies an older catalog (O22).
    VARVE_TRY_ASSIGN(const bool is_stamped, have_newest_stamp(all.front().id));
    VARVE_TRY_ASSIGN(auto* const first, find(all.front().id));
    if (!complete || !is_stamped) first->manifests().labels().rewrite();
  }
  return complete;
}

Result<bool> SeriesTable::have_newest_stamp(SeriesId id) const {
  const auto labels =
      maintain::read_labels(*folder_.files, folder_.codecs.frames(), folder_.paths.series(id), id);
  if (!labels || labels->torn) return false;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto catalog,
                   txn.get(meta::catalog::kSettings, maintain::kCatalogIdSetting));
  return catalog && catalog->view() == labels->catalog_id && labels->header.stamp == txn.id();
}

std::vector<series::Series*> SeriesTable::used() {
  const std::lock_guard lock(mutex_);
  std::vector<series::Series*> used;
  for (auto& [id, one] : series_) used.push_back(one.get());
  return used;
}

Result<void> SeriesTable::sync() {
  std::optional<Error> errors;
  for (auto* const one : used()) {
    auto synced = one->sync();
    if (synced) continue;
    errors = errors ? std::move(*errors).with_more("\n" + synced.error().message())
                    : std::move(synced).error();
  }
  if (!errors) return {};
  return std::move(*errors);
}

Result<void> SeriesTable::write_left_files() {
  std::string faults;
  for (auto* const one : used()) {
    const auto written = one->manifests().write_left();
    if (!written) faults += (faults.empty() ? "" : "\n") + written.error().message();
  }
  if (faults.empty()) return {};
  return Error(ErrorCode::kIncomplete,
               "all changes are made, but not yet noted for a repair, which would lack them if the "
               "catalog were lost. Free some space, then run `varve arrange`, or any other command "
               "that changes the repository: " +
                   faults);
}

void SeriesTable::stop() {
  for (auto* const one : used()) one->stop();
}

void SeriesTable::release() {
  for (auto* const one : used()) {
    one->stop();
    one->release();
  }
}

}  // namespace varve::repo
