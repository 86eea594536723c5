// SPDX-License-Identifier: Apache-2.0
// Finds missing files named by the catalog, without the keys of the repository.
#pragma once

#include <string>
#include <vector>

#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/folder_store.h"
#include "store/repository_paths.h"
#include "varve/result.h"

namespace varve::maintain {

/// Returns the paths of missing segments, volumes, labels and manifests of sealed versions, in
/// ascending order. Reads only the keys of the catalog's records, which even an encrypted
/// repository stores unencrypted. A writer may be active. `encrypted`: true for an encrypted
/// repository. An earlier release wrote neither labels nor manifests: in a plain repository, a
/// series without both misses none. `open_store` is empty if all data is on the disk. `catalog`: an
/// environment with the catalog's tables and checked pages. Errors: the errors of reading the
/// catalog and of listing folders.
[[nodiscard]] Result<std::vector<std::string>> find_missing_files(
    io::FileSystem& files, const store::StoreOpener& open_store,
    const store::RepositoryPaths& paths, const meta::Env& catalog, bool encrypted);

}  // namespace varve::maintain
