// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/layout_records.h"
#include "layout/category_layout.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::layout {

/// Calls `visit` for each container of a file, ascending by number, until `visit` returns false.
/// Reads no records behind the file's last container. Errors: those of reading the catalog and of
/// `visit`.
[[nodiscard]] Result<void> for_each_container_in(
    const meta::Txn& txn, StoreId store, const catalog::SegmentRecord& file,
    const std::function<Result<bool>(const format::ContainerRecord&)>& visit);

/// Returns the chunks that the catalog locates in the files. Takes the ids from the headers of the
/// files' containers, so the cost does not grow with the rest of the series. Leaves out the chunks
/// of a container with an unreadable header. A missing file has no chunks.
[[nodiscard]] Result<base::IdRuns> chunks_in_files(CategoryLayout& layout, const meta::Txn& txn,
                                                   const std::vector<SegmentNumber>& files);

}  // namespace varve::layout
