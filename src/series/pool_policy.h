// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "catalog/series_catalog.h"
#include "ingest/placement_policy.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// Returns the containers of the pool used by a sealed version, ascending. Leaves out missing
/// containers.
[[nodiscard]] Result<std::vector<ingest::ContainerUse>> containers_used(const meta::Txn& txn,
                                                                        SeriesId series,
                                                                        VersionNumber number);

/// Creates the policy of the next version of a series whose placement has a pool. The policy
/// inherits the newest sealed version's use of the pool's containers; a dropped version changes
/// nothing.
[[nodiscard]] Result<std::unique_ptr<ingest::PlacementPolicy>> pool_policy(
    const SeriesParts& parts, const catalog::SeriesRecord& owner);

}  // namespace varve::series
