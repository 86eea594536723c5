// SPDX-License-Identifier: Apache-2.0
// Prepares a store for a writer after a restart.
#pragma once

#include "base/ids.h"
#include "format/container_keys.h"
#include "meta/lmdb.h"
#include "store/segment_files.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::layout {

/// Prepares a store for writing, and sets the numbers that come next.
[[nodiscard]] Result<void> prepare_store(const meta::Env& catalog, StoreId id,
                                         store::SegmentStore& store, store::NumberSource& numbers);
/// Does the same, and then removes the files and bytes that a crash left (docs/ORDERING.md O6),
/// unless the files that the catalog names are not all there, or are those of another store. Lists
/// all files of the store, and reads the records of all its containers. Nothing else may write to
/// the store during the call. `keys` are those of the repository, or null for a plain one.
[[nodiscard]] Result<void> recover_store(const meta::Env& catalog, StoreId id,
                                         store::SegmentStore& store,
                                         const format::ContainerKeys* keys,
                                         store::NumberSource& numbers);

}  // namespace varve::layout
