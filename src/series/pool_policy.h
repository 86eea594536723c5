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

/// Returns the containers of the pool that a sealed version uses, ascending. Leaves out containers
/// that are not stored.
[[nodiscard]] Result<std::vector<ingest::ContainerUse>> containers_used(const meta::Txn& txn,
                                                                        SeriesId series,
                                                                        VersionNumber number);

/// Creates the policy of the next version of a series whose placement has a pool. It inherits how
/// the newest sealed version uses the pool's containers; a version that is dropped changes nothing.
[[nodiscard]] Result<std::unique_ptr<ingest::PlacementPolicy>> pool_policy(
    const SeriesParts& parts, const catalog::SeriesRecord& owner);

}  // namespace varve::series
