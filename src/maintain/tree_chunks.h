// SPDX-License-Identifier: Apache-2.0
// The chunks of a tree of which a part may be lost.
#pragma once

#include "base/id_runs.h"
#include "format/dir_node.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// The chunks that the readable part of a sealed tree refers to. `whole` becomes false if there
/// is another part.
[[nodiscard]] base::IdRuns tree_chunks(const meta::Env& catalog, SeriesId series,
                                       const format::DirEntry& root, bool& whole);

}  // namespace varve::maintain
