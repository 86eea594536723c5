// SPDX-License-Identifier: Apache-2.0
#include "repo/settings_editor.h"

#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "catalog/refused_record.h"
#include "catalog/series_catalog.h"
#include "catalog/series_settings.h"
#include "catalog/upkeep_record.h"
#include "meta/lmdb.h"
#include "remote/object_lock_setting.h"
#include "repo/required_features.h"

namespace varve::repo {

namespace {

/// Returns the number of the series' newest sealed version; 0 without a sealed version.
Result<VersionNumber> newest_sealed(const meta::Txn& txn, SeriesId series) {
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series));
  VersionNumber newest{};
  for (const catalog::VersionRecord& version : versions) {
    if (version.state == VersionState::kSealed) newest = version.number;
  }
  return newest;
}

}  // namespace

void SettingsEditor::complete_change() {
  series_.write_all_labels();
  folder_.replication().changed();
}

Result<SeriesSettings> SettingsEditor::series_defaults() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_new_series_settings(txn, features_.initial_settings());
}

Result<SeriesSettings> SettingsEditor::change_series_defaults(const SeriesOptions& changes) {
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
  complete_change();
  return wanted;
}

Result<PoolIndexChoice> SettingsEditor::pool_index() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_pool_index(txn);
}

// Only the catalog and the labels change: the files of an index are derived data.
Result<void> SettingsEditor::set_pool_index(const PoolIndexChoice& choice) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY(check_pool_index(choice));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto present, catalog::find_pool_index(txn));
  if (choice == present) return {};
  VARVE_TRY(catalog::put_pool_index(txn, choice));
  VARVE_TRY(txn.commit());
  complete_change();
  return {};
}

Result<UpkeepSettings> SettingsEditor::upkeep_settings() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_upkeep_settings(txn);
}

Result<void> SettingsEditor::set_upkeep_settings(const UpkeepSettings& settings) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(const auto lock, remote::object_lock_of(folder_.catalog));
  // The store may take long, so the request comes before the transaction.
  if (settings.object_lock != lock) {
    VARVE_TRY(folder_.replication().allow_lock(settings.object_lock));
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto present, catalog::find_upkeep_settings(txn));
  if (settings == present) return {};
  VARVE_TRY(catalog::put_upkeep_settings(txn, settings));
  VARVE_TRY(txn.commit());
  folder_.replication().set_lock(settings.object_lock);
  complete_change();
  return {};
}

Result<ArrangeSettings> SettingsEditor::arrange_settings() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  return catalog::find_arrange_settings(txn);
}

Result<void> SettingsEditor::set_arrange_settings(const ArrangeSettings& settings) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY(features_.require_for(settings));
  VARVE_TRY(catalog::put_arrange_settings(txn, settings));
  VARVE_TRY(txn.commit());
  complete_change();
  return {};
}

// A note needs no removal: a version newer than the noted version makes the note void.
Result<std::optional<RefusedStore>> SettingsEditor::refused_store(SeriesId series) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto record, catalog::find_refused(txn, series));
  if (!record) return std::optional<RefusedStore>();
  VARVE_TRY_ASSIGN(const auto newest, newest_sealed(txn, series));
  return newest > record->newest ? std::nullopt : std::optional(record->store);
}

Result<void> SettingsEditor::note_refused_store(SeriesId series, RefusalReason reason) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto newest, newest_sealed(txn, series));
  VARVE_TRY(catalog::put_refused(txn, series, {newest, {reason, folder_.clock.now()}}));
  VARVE_TRY(txn.commit());
  folder_.replication().changed();
  return {};
}

}  // namespace varve::repo
