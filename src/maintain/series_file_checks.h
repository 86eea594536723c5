// SPDX-License-Identifier: Apache-2.0
// Checks the files of a series beside the data: labels, manifests, names beside versions, indexes.
#pragma once

#include <vector>

#include "base/ids.h"
#include "catalog/series_catalog.h"
#include "maintain/check_findings.h"
#include "maintain/check_scope.h"
#include "varve/result.h"

namespace varve::maintain {

/// Reports labels that do not agree with the catalog, and damaged notes of deletions. `all`: the
/// series in the catalog. Errors: the errors of the catalog.
[[nodiscard]] Result<void> check_labels(const CheckScope& scope, CheckFindings& findings,
                                        const std::vector<catalog::SeriesRecord>& all);

/// Reads labels and manifests completely, because both replace a lost catalog.
void check_manifests(const CheckScope& scope, CheckFindings& findings,
                     const catalog::SeriesRecord& series,
                     const std::vector<catalog::VersionRecord>& versions);

/// Checks the file of names beside versions. Adds notes on names hidden by versions.
void check_beside(const CheckScope& scope, CheckFindings& findings, SeriesId series,
                  const std::vector<catalog::VersionRecord>& versions);

/// Checks the index of the newest sealed version.
void check_index(const CheckScope& scope, CheckFindings& findings,
                 const catalog::SeriesRecord& series,
                 const std::vector<catalog::VersionRecord>& versions);

}  // namespace varve::maintain
