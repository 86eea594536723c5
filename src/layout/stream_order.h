// SPDX-License-Identifier: Apache-2.0
// The order of chunks for a reader of the newest version.
#pragma once

#include <functional>
#include <vector>

#include "base/id_runs.h"
#include "catalog/object_store.h"
#include "format/dir_node.h"
#include "varve/result.h"

namespace varve::layout {

/// Calls the given function with the chunk runs of a version's files, in tree order, until the
/// function returns false.
using StreamWalk = std::function<Result<void>(const std::function<bool(const base::IdRun&)>&)>;

/// Returns the stream of a sealed tree. `objects` must outlive the walk.
[[nodiscard]] StreamWalk walk_tree(catalog::ObjectReader& objects, format::DirEntry root);

/// Returns `chunks`, each once: first the chunks of the stream in stream order, then the remaining
/// chunks by id. Damage in the tree only costs order. `stop` ends the walk early.
[[nodiscard]] std::vector<base::IdRun> in_stream_order(const base::IdRuns& chunks,
                                                       const StreamWalk& stream,
                                                       const std::function<bool()>& stop);

}  // namespace varve::layout
