// SPDX-License-Identifier: Apache-2.0
// Chooses one place for each chunk. A crash between copying and removing leaves several.
#pragma once

#include <vector>

#include "catalog/location_table.h"
#include "format/data_codecs.h"
#include "maintain/container_scan.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns location runs that contain every chunk of the containers exactly once. If a chunk has
/// several places, prefers one where its bytes match their SHA-256. Reads only the containers that
/// share chunks with others.
[[nodiscard]] std::vector<catalog::LocationRecord> choose_places(
    const format::DataCodecs& codecs, store::SegmentStore& store, StoreId store_id,
    const std::vector<FoundContainer>& containers);

}  // namespace varve::maintain
