// SPDX-License-Identifier: Apache-2.0
// Checks whether the records of the catalog agree with each other.
#pragma once

#include <vector>

#include "catalog/series_catalog.h"
#include "maintain/check_findings.h"
#include "maintain/check_scope.h"
#include "varve/result.h"

namespace varve::maintain {

/// Reads all values of the catalog, and reports damaged values.
[[nodiscard]] Result<void> check_values(const CheckScope& scope, CheckFindings& findings);

/// Reports records whose owner has no record, and counters that are too low: signs of erased or
/// older records. `all`: the series in the catalog.
[[nodiscard]] Result<void> check_owners(const CheckScope& scope, CheckFindings& findings,
                                        const std::vector<catalog::SeriesRecord>& all);

/// Compares the tree of the newest sealed version with the record of the version's chunks.
[[nodiscard]] Result<void> check_newest_record(const CheckScope& scope, CheckFindings& findings,
                                               const catalog::SeriesRecord& series,
                                               const std::vector<catalog::VersionRecord>& versions);

}  // namespace varve::maintain
