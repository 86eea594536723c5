// SPDX-License-Identifier: Apache-2.0
#include "maintain/settled_files.h"

#include <set>

#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "layout/version_walk.h"
#include "maintain/owners.h"

namespace varve::maintain {

Result<std::vector<parity::DataFile>> settled_files(const meta::Txn& txn, SeriesId owner) {
  std::set<VersionNumber> open;
  if (owner != kPoolOwner) {
    // An open version has a higher number than the sealed versions.
    VARVE_TRY_ASSIGN(const auto versions, layout::recent_versions(txn, owner, 1));
    for (const auto& version : versions) {
      if (!version.sealed) open.insert(version.number);
    }
  }
  std::vector<parity::DataFile> files;
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, catalog::store_of(owner)));
  for (const auto& segment : segments) {
    if (segment.role == catalog::SegmentRole::kNew && open.contains(segment.version)) continue;
    // The form of a file, unlike its role, does not change while a version is open.
    files.push_back({segment.segment, segment.bytes, is_volume(segment.segment),
                     static_cast<std::uint32_t>(segment.version)});
  }
  return files;
}

}  // namespace varve::maintain
