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

/// Prepares a store for writing, and sets the next numbers.
[[nodiscard]] Result<void> prepare_store(const meta::Env& catalog, StoreId id,
                                         store::SegmentStore& store, store::NumberSource& numbers);
/// Prepares a store as prepare_store(), and then removes the files and bytes left by a crash
/// (docs/ORDERING.md O6). Removes nothing if files named in the catalog are missing or belong to a
/// different store. Lists all files of the store, and reads the records of all its containers. No
/// concurrent code may write to the store. `keys`: the repository's keys, or null for a plain
/// repository.
[[nodiscard]] Result<void> recover_store(const meta::Env& catalog, StoreId id,
                                         store::SegmentStore& store,
                                         const format::ContainerKeys* keys,
                                         store::NumberSource& numbers);

}  // namespace varve::layout
