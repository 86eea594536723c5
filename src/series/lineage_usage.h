// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "layout/window.h"
#include "series/lineage_store.h"
#include "series/series_parts.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"

namespace varve::series {

/// Returns the sizes of the sealed versions, or only of `only`, ascending. Works on a snapshot of
/// the catalog: writing, sealing, arranging and deleting go on meanwhile. The cost grows with the
/// number of versions and with the changes of each. `hold` has the chunks that the open version
/// refers to.
[[nodiscard]] Result<std::vector<VersionUsage>> measure_usage(const SeriesParts& parts,
                                                              LineageStore& store,
                                                              const layout::OpenHold& hold,
                                                              std::optional<VersionNumber> only);

/// Returns the versions of a series that have a lock, ascending.
/// Errors: kNotFound if the series was removed.
[[nodiscard]] Result<std::vector<VersionLock>> version_locks(const SeriesParts& parts);

}  // namespace varve::series
