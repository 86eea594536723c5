// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// Opens the catalog in the folder `directory`. Checks the pages of a small catalog before LMDB
/// reads the pages; with `probe`, the pages of any catalog. Errors: kCorrupt, with the advice to
/// repair, for pages that LMDB cannot use; as for EnvFiles::open() and Env::open().
[[nodiscard]] Result<Env> open_catalog(io::FileSystem& files, const std::string& directory,
                                       const EnvOptions& options, bool probe);

/// Returns the options to open a repository's catalog for writing. The process holds the
/// repository's lock, the file `writer_lock`. `keys`: the repository's keys; null for a plain
/// repository.
[[nodiscard]] EnvOptions catalog_options(std::string writer_lock,
                                         std::shared_ptr<const crypto::KeyRing> keys);

}  // namespace varve::meta
