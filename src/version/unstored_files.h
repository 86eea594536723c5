// SPDX-License-Identifier: Apache-2.0
// Names the files of an open version whose content is stored nowhere.
#pragma once

#include <functional>

#include "base/id_runs.h"
#include "io/file_system.h"
#include "varve/check.h"
#include "varve/result.h"
#include "version/open_version_check.h"

namespace varve::version {

/// Returns the chunks of the argument that the catalog locates.
using FindLocated = std::function<Result<base::IdRuns>(const base::IdRuns& chunks)>;

/// Returns the files of an open version that refer to chunks unknown to the catalog, each by all
/// its names. Compares only files with a record in the overlay: unchanged files of a base belong to
/// the base. Calls `located` after reading the references, because a writer locates chunks first.
/// The caller checks the overlay's pages; the calling process must not have the version open.
/// Memory: 8 bytes per returned file.
/// Errors: kCorrupt; the errors of `located` and of the file system.
[[nodiscard]] Result<LostFiles> find_unstored_files(io::FileSystem& files,
                                                    const StagedVersion& version,
                                                    const FindLocated& located);

}  // namespace varve::version
