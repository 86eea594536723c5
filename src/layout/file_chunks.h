// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "layout/category_layout.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::layout {

/// Returns the chunks that the catalog locates in the files. Takes the ids from the headers of the
/// files' containers, so the cost does not grow with the rest of the series. Leaves out the chunks
/// of a container with an unreadable header. A missing file has no chunks.
[[nodiscard]] Result<base::IdRuns> chunks_in_files(CategoryLayout& layout, const meta::Txn& txn,
                                                   const std::vector<SegmentNumber>& files);

}  // namespace varve::layout
