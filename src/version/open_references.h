// SPDX-License-Identifier: Apache-2.0
// Finds the chunks that an open version refers to, for a deletion of the unreferenced chunks.
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
/// Appends the chunks of the inode's recipe and staged content, but not the chunks of a stream.
void add_references(const OpenInode& inode, std::vector<base::IdRun>& runs);

/// Returns the chunks referred to by the records of an overlay. `base_end`: as for
/// decode_open_inode().
/// Errors: kCorrupt if a record is damaged.
[[nodiscard]] Result<base::IdRuns> overlay_references(const meta::Txn& overlay, Ino base_end);

/// Opens the overlay below `staging_directory` and returns overlay_references(). No process may
/// have the overlay open. `keys` come from meta::overlay_keys().
/// Returns no chunks if the overlay was never made.
[[nodiscard]] Result<base::IdRuns> stored_references(io::FileSystem& files,
                                                     const std::string& staging_directory,
                                                     const meta::EnvKeys& keys, Ino base_end);

/// Returns all chunks referred to by the files of an open version, except the chunks of a base.
/// Calls `retire` as OpenVersion::references() does. The caller holds none of the version's locks.
[[nodiscard]] Result<base::IdRuns> collect_references(OpenState& state, CloneSources& clones,
                                                      const std::function<void()>& retire);

}  // namespace varve::version
