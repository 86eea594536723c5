// SPDX-License-Identifier: Apache-2.0
// The order in which a reader of the newest version meets chunks.
#pragma once

#include <functional>
#include <vector>

#include "base/id_runs.h"
#include "catalog/object_store.h"
#include "format/dir_node.h"
#include "varve/result.h"

namespace varve::layout {

/// Calls its argument with the chunk runs of a version's files, in the order of the tree, until
/// that returns false.
using StreamWalk = std::function<Result<void>(const std::function<bool(const base::IdRun&)>&)>;

/// The stream of a sealed tree. `objects` must outlive the walk.
[[nodiscard]] StreamWalk walk_tree(catalog::ObjectReader& objects, format::DirEntry root);

/// `chunks`, each once: those of the stream first, as it has them, the others by id. Damage in
/// the tree costs order, nothing else. `stop` ends the walk early.
[[nodiscard]] std::vector<base::IdRun> in_stream_order(const base::IdRuns& chunks,
                                                       const StreamWalk& stream,
                                                       const std::function<bool()>& stop);

}  // namespace varve::layout
