// SPDX-License-Identifier: Apache-2.0
// Checks whether the records of files, containers and locations agree with each other.
#pragma once

#include <functional>
#include <string>

#include "meta/lmdb.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Receives one damage. `path`: the affected file below the store's folder; "" for the catalog.
using LayoutDamage = std::function<void(std::string path, std::string what)>;

/// Calls `damage` for each contradiction:
/// - a chunk with two locations, or in a container that does not exist,
/// - a chunk or container of the pool in a series' store, or the other way around,
/// - a wrong sum of live bytes,
/// - descending births in a volume,
/// - a file shorter than recorded.
/// Reads only the catalog and, if so requested, the lengths of the files.
[[nodiscard]] Result<void> check_layout(const meta::Txn& txn, store::SegmentStore& store,
                                        StoreId store_id, bool check_lengths,
                                        const LayoutDamage& damage);

}  // namespace varve::maintain
