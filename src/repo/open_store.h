// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "repo/source_memory.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::repo {

/// Returns the series' open version if the version has the requested name, or if an interrupted
/// store of the same source left the version; otherwise opens a new version with `root`. Creates
/// the series if needed.
/// Errors: as for Repository::open_version().
[[nodiscard]] Result<VersionInfo> open_or_continue(Repository& repository,
                                                   const StoreRequest& request,
                                                   SourceMemory& memory, const NewFile& root);

}  // namespace varve::repo
