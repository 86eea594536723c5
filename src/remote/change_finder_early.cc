// SPDX-License-Identifier: Apache-2.0
// Finds data of open versions to upload early. docs/decisions/110.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "remote/change_finder.h"
#include "remote/replicator_round.h"
#include "store/segment_files.h"

namespace varve::remote {

namespace {

using catalog::SegmentRecord;
using format::ContainerRecord;

// Returns the full segments of an open version. A version fills file after file, and only the last
// file may grow. Arranging writes only files of sealed versions.
Result<std::vector<SegmentRecord>> closed_segments(const meta::Txn& catalog, StoreId store,
                                                   VersionNumber open) {
  VARVE_TRY_ASSIGN(auto segments, catalog::list_segments(catalog, store));
  std::erase_if(segments, [&](const SegmentRecord& segment) {
    return segment.role != catalog::SegmentRole::kNew || segment.version != open ||
           segment.bytes == 0;
  });
  if (!segments.empty()) segments.pop_back();
  return segments;
}

}  // namespace

// Finds the files and their containers. A file partly in the store waits for the seal.
Result<void> ChangeFinder::find_early(Round& round) const {
  VARVE_TRY_ASSIGN(const auto now, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const bool rebuilt, is_rebuilt(now));
  if (rebuilt) return {};
  VARVE_TRY_ASSIGN(const auto uploaded, state_.uploaded());
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(now));
  for (const auto& series : all) {
    const auto store = catalog::store_of(series.id);
    VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(now, series.id));
    for (const auto& version : versions) {
      if (version.state != VersionState::kOpen || version.unfinished) continue;
      VARVE_TRY_ASSIGN(const auto segments, closed_segments(now, store, version.number));
      for (const auto& segment : segments) {
        const auto path = series_folder(series.id) + "/" + store::segment_path(segment.segment);
        const bool is_known = objects_.contains(path) || uploaded.contains(extent_key(path, 0));
        const bool is_changed =
            parts_.notes != nullptr && parts_.notes->has(LocalNote::kChanged, path);
        if (is_known || is_changed) continue;
        auto& file = round.containers[path];
        file.store = store;
        std::uint32_t left = segment.containers;
        VARVE_TRY(
            catalog::for_each_container_from(now, store, segment.first_container,
                                             [&](const ContainerRecord& container) -> Result<bool> {
                                               if (container.segment != segment.segment)
                                                 return true;
                                               file.containers.push_back(container);
                                               return --left != 0;
                                             }));
        std::ranges::sort(file.containers, {}, &ContainerRecord::offset);
        round.files.push_back({path, segment.bytes, 0});
      }
    }
  }
  return {};
}

}  // namespace varve::remote
