// SPDX-License-Identifier: Apache-2.0
// Collects the chunks of a tree that may have lost parts.
#pragma once

#include "base/id_runs.h"
#include "format/dir_node.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Returns the chunks referred to by the readable part of a sealed tree. Sets `whole` to false if a
/// part is unreadable.
[[nodiscard]] base::IdRuns tree_chunks(const meta::Env& catalog, SeriesId series,
                                       const format::DirEntry& root, bool& whole);

}  // namespace varve::maintain
