// SPDX-License-Identifier: Apache-2.0
// One place for each chunk, where a crash between copying and removing left several.
#pragma once

#include <vector>

#include "catalog/location_table.h"
#include "io/file_system.h"
#include "maintain/container_scan.h"
#include "varve/result.h"

namespace varve::maintain {

/// Location runs that do not overlap and hold every chunk of the containers once. Of several
/// places of a chunk one is taken where its bytes match their SHA-256, if there is any; only
/// containers that share chunks with others are read for that.
[[nodiscard]] std::vector<catalog::LocationRecord> choose_places(
    io::FileSystem& files, const std::string& series_directory, SeriesId series,
    const std::vector<FoundContainer>& containers);

}  // namespace varve::maintain
