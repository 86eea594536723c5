// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "repo/source_memory.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::repo {

/// Returns the series' open version if it has the requested name, or if an interrupted store of the
/// same source left it; otherwise opens a new version with this root. Creates the series if needed.
/// Errors: those of Repository::open_version().
[[nodiscard]] Result<VersionInfo> open_or_continue(Repository& repository,
                                                   const StoreRequest& request,
                                                   SourceMemory& memory, const NewFile& root);

}  // namespace varve::repo
