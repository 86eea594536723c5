// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/arrange.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/rewrite.h"

namespace varve::series {

/// Sets the record's unique_bytes and stored_bytes: of the chunks born in the version, and of their
/// containers.
[[nodiscard]] Result<void> measure_version(const SeriesParts& parts,
                                           catalog::VersionRecord& record);

/// Returns the categories by file, then by birth; categories of the active set come last.
/// Errors: kNotFound if the series was removed.
[[nodiscard]] Result<std::vector<CategoryInfo>> categories(const SeriesParts& parts);

/// Measures the frames with a prefix. Reads the headers of all volumes; leaves out a header that
/// cannot be read, or that was freed meanwhile. Errors: kNotFound if the series was removed.
[[nodiscard]] Result<DeltaSavings> delta_savings(const SeriesParts& parts);

/// Errors: kNotFound if the series was removed.
[[nodiscard]] Result<ArrangingDebt> arranging_debt(const SeriesParts& parts);

/// Returns a sealed version's use of the pool, with the present state of the containers.
/// Errors: kNotFound if the version does not exist or is open.
[[nodiscard]] Result<PoolUsage> pool_usage(const SeriesParts& parts, VersionNumber number);

/// Adds the series' versions, chunks and files to `stats`.
[[nodiscard]] Result<void> add_stats(const SeriesParts& parts, const meta::Txn& txn,
                                     RepositoryStats& stats);
/// Adds the pool's chunks and files, in its folder, to `stats`.
[[nodiscard]] Result<void> add_pool_stats(const meta::Txn& txn, io::FileSystem& files,
                                          const std::string& folder, RepositoryStats& stats);

}  // namespace varve::series
