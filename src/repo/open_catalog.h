// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/repository_paths.h"
#include "varve/result.h"

namespace varve::repo {

/// Opens the catalog, and again if a compaction replaces it meanwhile. Before LMDB sees its pages,
/// checks those of a small catalog, and with `probe` those of any.
/// Errors: kCorrupt, with the advice to repair, for pages that LMDB cannot use; those of
/// Env::open().
[[nodiscard]] Result<meta::Env> open_catalog(io::FileSystem& files,
                                             const store::RepositoryPaths& paths,
                                             const meta::EnvOptions& options, bool probe);

}  // namespace varve::repo
