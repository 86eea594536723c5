// SPDX-License-Identifier: Apache-2.0
#include "series/version_records.h"

#include <utility>

#include "catalog/claimed_time.h"
#include "catalog/version_origin.h"
#include "varve/version_name.h"

namespace varve::series {

Error no_series() { return {ErrorCode::kNotFound, "no such series"}; }
Error no_version() { return {ErrorCode::kNotFound, "no such version"}; }

Result<catalog::SeriesRecord> VersionRecords::owner() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto record, catalog::find_series(txn, series_));
  if (!record) return no_series();
  return std::move(*record);
}

Result<std::vector<catalog::VersionRecord>> VersionRecords::all() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  return catalog::list_versions(txn, series_);
}

Result<catalog::VersionRecord> VersionRecords::find(VersionNumber number) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto record, catalog::find_version(txn, series_, number));
  if (!record) return no_version();
  return std::move(*record);
}

Result<std::optional<catalog::VersionRecord>> VersionRecords::open() const {
  VARVE_TRY_ASSIGN(auto records, all());
  std::optional<catalog::VersionRecord> open;
  for (auto& record : records) {
    if (record.state == VersionState::kOpen && !record.unfinished) open = std::move(record);
  }
  return open;
}

Result<std::optional<catalog::VersionRecord>> VersionRecords::find_named(
    std::string_view name) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  return catalog::find_version_named(txn, series_, name);
}

Result<std::optional<catalog::VersionRecord>> VersionRecords::newest_sealed() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(auto newest, catalog::newest_sealed_version(txn, series_));
  if (!newest || !newest->name_fault.empty()) return newest;
  // In a damaged catalog, another version may have the same name.
  VARVE_TRY_ASSIGN(const auto named, catalog::find_version_named(txn, series_, newest->name));
  if (named && named->number == newest->number) return newest;
  VARVE_TRY_ASSIGN(auto records, catalog::list_versions(txn, series_));
  for (auto& record : records) {
    if (record.number == newest->number) newest = std::move(record);
  }
  return newest;
}

Result<std::optional<catalog::LinkTable>> VersionRecords::links(VersionNumber number) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  return catalog::version_links(txn, series_, number);
}

Result<void> VersionRecords::check_new_name(std::string_view name) const {
  VARVE_TRY(check_version_name(name, VersionState::kOpen));
  VARVE_TRY_ASSIGN(const auto known, find_named(name));
  if (known) return Error(ErrorCode::kExists, "a version of this name exists already");
  return {};
}

VersionInfo version_info(const catalog::VersionRecord& record, const std::string& series_name) {
  VersionInfo info;
  info.series = record.series;
  info.number = record.number;
  info.series_name = series_name;
  info.name = record.name;
  info.state = record.state;
  info.opened_at = record.opened_at;
  info.sealed_at = record.sealed_at;
  info.entries = record.entries;
  info.logical_bytes = record.logical_bytes;
  info.unique_bytes = record.unique_bytes;
  info.stored_bytes = record.stored_bytes;
  if (record.state == VersionState::kSealed) {
    info.claimed_at = catalog::claimed_time(record.number, record.root.xattrs);
    info.problems = catalog::problems_of(record.number, record.root.xattrs);
    info.origin = catalog::origin_of(record.number, record.root.xattrs);
  }
  return info;
}

}  // namespace varve::series
