// SPDX-License-Identifier: Apache-2.0
#include "layout/version_walk.h"

#include <algorithm>

#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "meta/schema.h"

namespace varve::layout {

Result<std::optional<LiveVersion>> VersionWalk::next() {
  std::optional<meta::KeyValue> at;
  if (cursor_) {
    VARVE_TRY_ASSIGN(at, cursor_->previous());
  } else {
    VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn_, meta::catalog::kVersions));
    cursor_.emplace(std::move(cursor));
    const auto last = meta::version_key(series_, static_cast<VersionNumber>(0xffffffffU));
    VARVE_TRY_ASSIGN(at, cursor_->seek_at_or_before(last));
  }
  const auto prefix = meta::series_key(series_);
  if (!at || !at->key.starts_with(prefix)) return std::optional<LiveVersion>();
  const auto number = static_cast<VersionNumber>(base::load_be32(at->key.substr(prefix.size())));
  VARVE_TRY_ASSIGN(const auto record, catalog::find_version(txn_, series_, number));
  VARVE_TRY_ASSIGN(const auto retention, catalog::find_retention(txn_, series_, number));
  const bool sealed = record && record->state == VersionState::kSealed;
  LiveVersion version{number, sealed, retention.side};
  if (record) version.size = {record->entries, record->logical_bytes};
  return std::optional(version);
}

Result<std::vector<LiveVersion>> recent_versions(const meta::Txn& txn, SeriesId series,
                                                 std::uint32_t window) {
  std::vector<LiveVersion> versions;
  VersionWalk walk(txn, series);
  for (std::uint32_t mains = 0; mains < window;) {
    VARVE_TRY_ASSIGN(const auto version, walk.next());
    if (!version) break;
    if (version->sealed && !version->side) ++mains;
    versions.push_back(*version);
  }
  std::reverse(versions.begin(), versions.end());
  return versions;
}

}  // namespace varve::layout
