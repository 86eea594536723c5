// SPDX-License-Identifier: Apache-2.0
// The staging folders of a series' open versions.
#pragma once

#include "catalog/series_catalog.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// Errors: kCorrupt if an open version's staging folder is missing: the version must not count as
/// empty.
[[nodiscard]] Result<void> check_staging(const SeriesParts& parts,
                                         const catalog::VersionRecord& record);

/// Removes the staging folder of a version that is no longer open.
[[nodiscard]] Result<void> remove_staging(const SeriesParts& parts,
                                          const catalog::VersionRecord& record);

}  // namespace varve::series
