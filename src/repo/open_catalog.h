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

/// Opens the catalog. Checks the pages of a small catalog before LMDB reads the pages; with
/// `probe`, the pages of any catalog. Errors: kCorrupt, with the advice to repair, for pages that
/// LMDB cannot use; as for EnvFiles::open() and Env::open().
[[nodiscard]] Result<meta::Env> open_catalog(io::FileSystem& files,
                                             const store::RepositoryPaths& paths,
                                             const meta::EnvOptions& options, bool probe);

/// Returns the options to open the catalog of the repository in `folder` for writing. The process
/// holds the repository's lock. `keys`: the repository's keys; null for a plain repository.
[[nodiscard]] meta::EnvOptions catalog_options(const std::string& folder,
                                               std::shared_ptr<const crypto::KeyRing> keys);

}  // namespace varve::repo
