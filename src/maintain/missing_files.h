// SPDX-License-Identifier: Apache-2.0
// Finds files that the catalog names and that are gone, without the keys of the repository.
#pragma once

#include <string>
#include <vector>

#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/repository_paths.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns the paths of segments, volumes, labels and manifests of sealed versions that are
/// missing, in ascending order. Reads only the keys of the catalog's records, which are in the
/// clear in an encrypted one. A writer may be active. `encrypted`: of the repository. An earlier
/// release wrote neither labels nor manifests: without both, a series of a plain repository misses
/// none. `catalog`: with the catalog's tables; its pages were checked. Errors: those of reading it,
/// and of listing folders.
[[nodiscard]] Result<std::vector<std::string>> find_missing_files(
    io::FileSystem& files, const store::RepositoryPaths& paths, const meta::Env& catalog,
    bool encrypted);

}  // namespace varve::maintain
