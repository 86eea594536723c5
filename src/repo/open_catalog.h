// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/repository_paths.h"
#include "varve/result.h"

namespace varve::repo {

/// Opens the catalog. Before LMDB sees its pages, checks those of a small catalog, and with `probe`
/// those of any.
/// Errors: kCorrupt, with the advice to repair, for pages that LMDB cannot use; those of
/// EnvFiles::open() and Env::open().
[[nodiscard]] Result<meta::Env> open_catalog(io::FileSystem& files,
                                             const store::RepositoryPaths& paths,
                                             const meta::EnvOptions& options, bool probe);

/// Returns how a process that holds the lock of the repository in `folder` opens its catalog for
/// writing. `keys` are those of the repository, or null for a plain one.
[[nodiscard]] meta::EnvOptions catalog_options(const std::string& folder,
                                               std::shared_ptr<const crypto::KeyRing> keys);

}  // namespace varve::repo
