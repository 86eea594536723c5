// SPDX-License-Identifier: Apache-2.0
// Names the files of a version whose content is lost.
#pragma once

#include "base/id_runs.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "varve/check.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns the files of a sealed version that refer to a chunk of `lost`, each by all its names.
/// Reads the whole tree of the version.
/// Errors: kCorrupt if the tree cannot be read.
[[nodiscard]] Result<LostFiles> find_lost_files(catalog::ObjectReader& objects,
                                                const catalog::VersionRecord& version,
                                                const base::IdRuns& lost);

}  // namespace varve::maintain
