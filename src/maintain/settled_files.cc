// SPDX-License-Identifier: Apache-2.0
#include "maintain/settled_files.h"

#include <set>

#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"

namespace varve::maintain {

Result<std::vector<parity::DataFile>> settled_files(const meta::Txn& txn, SeriesId series) {
  std::set<VersionNumber> open;
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series));
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) open.insert(version.number);
  }
  std::vector<parity::DataFile> files;
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, catalog::store_of(series)));
  for (const auto& segment : segments) {
    if (segment.role == catalog::SegmentRole::kNew && open.contains(segment.version)) continue;
    files.push_back({segment.segment, segment.bytes, !segment.active(),
                     static_cast<std::uint32_t>(segment.version)});
  }
  return files;
}

}  // namespace varve::maintain
