// SPDX-License-Identifier: Apache-2.0
// Finds the chunks that an open version refers to, so that a deletion can remove the others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "version/clone_sources.h"
#include "version/open_inode.h"
#include "version/open_state.h"

namespace varve::version {

/// Appends the chunks of a recipe.
void add_references(const format::Recipe& recipe, std::vector<base::IdRun>& runs);
/// Appends the chunks of the inode's recipe and of its staged content; not those of a stream.
void add_references(const OpenInode& inode, std::vector<base::IdRun>& runs);

/// Returns the chunks that the records of an overlay refer to. `base_end` is the same as for
/// decode_open_inode().
/// Errors: kCorrupt if a record is damaged.
[[nodiscard]] Result<base::IdRuns> overlay_references(const meta::Txn& overlay, Ino base_end);

/// Returns the same for the overlay below `staging_directory`, which no process may have open.
/// `keys` are those of meta::overlay_keys().
/// Returns no chunks if the overlay was never made.
[[nodiscard]] Result<base::IdRuns> stored_references(io::FileSystem& files,
                                                     const std::string& staging_directory,
                                                     const meta::EnvKeys& keys, Ino base_end);

/// Returns all chunks that the files of an open version refer to, except those of a base. Calls
/// `retire` as OpenVersion::references() does. The caller holds none of the version's locks.
[[nodiscard]] Result<base::IdRuns> collect_references(OpenState& state, CloneSources& clones,
                                                      const std::function<void()>& retire);

}  // namespace varve::version
