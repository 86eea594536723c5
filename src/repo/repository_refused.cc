// SPDX-License-Identifier: Apache-2.0
// The notes of refused stores. A note needs no removal: a version newer than the noted version
// makes the note void.
#include <optional>

#include "catalog/refused_record.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "repo/repository_impl.h"
#include "series/series_parts.h"
#include "varve/refused_store.h"

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

Result<std::optional<RefusedStore>> RepositoryImpl::refused_store(SeriesId series) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto record, catalog::find_refused(txn, series));
  if (!record) return std::optional<RefusedStore>();
  VARVE_TRY_ASSIGN(const auto newest, newest_sealed(txn, series));
  return newest > record->newest ? std::nullopt : std::optional(record->store);
}

Result<void> RepositoryImpl::note_refused_store(SeriesId series, RefusalReason reason) {
  VARVE_TRY(folder_.check_writable());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto newest, newest_sealed(txn, series));
  VARVE_TRY(catalog::put_refused(txn, series, {newest, {reason, folder_.clock.now()}}));
  VARVE_TRY(txn.commit());
  folder_.replicate_soon();
  return {};
}

}  // namespace varve::repo
