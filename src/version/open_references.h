// SPDX-License-Identifier: Apache-2.0
// Which chunks an open version refers to, so that a deletion can take the others.
#pragma once

#include <string>
#include <vector>

#include "base/id_runs.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "version/open_inode.h"

namespace varve::version {

/// Appends the chunks of a recipe.
void add_references(const format::Recipe& recipe, std::vector<base::IdRun>& runs);
/// Appends the chunks of the inode's recipe and of what it has staged; not those of a stream.
void add_references(const OpenInode& inode, std::vector<base::IdRun>& runs);

/// Returns the chunks that the records of an overlay refer to. `base_end`: as for
/// decode_open_inode().
/// Errors: kCorrupt if a record is damaged.
[[nodiscard]] Result<base::IdRuns> overlay_references(const meta::Txn& overlay, Ino base_end);

/// The same of an overlay that no process has open, below `staging_directory`. Returns none if the
/// overlay was never made.
[[nodiscard]] Result<base::IdRuns> stored_references(io::FileSystem& files,
                                                     const std::string& staging_directory,
                                                     Ino base_end);

}  // namespace varve::version
