// SPDX-License-Identifier: Apache-2.0
// The owners of stored data: each series has a store of containers, and so does the pool.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/repository_paths.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Owner number of the pool. No series has this number, and the pool comes before all series.
/// catalog::store_of() returns kPoolStore for the number.
inline constexpr SeriesId kPoolOwner{0};

/// Returns the folder of an owner's store.
[[nodiscard]] std::string owner_folder(const store::RepositoryPaths& paths, SeriesId owner);

/// Returns whether the catalog knows a pool, in use or not.
[[nodiscard]] Result<bool> has_pool(const meta::Txn& txn);
/// Returns the owners known to the catalog, in ascending order.
[[nodiscard]] Result<std::vector<SeriesId>> owners_in(const meta::Txn& txn);
/// Returns the owners with a folder, in ascending order.
[[nodiscard]] Result<std::vector<SeriesId>> owner_folders(io::FileSystem& files,
                                                          const store::RepositoryPaths& paths);

/// Returns whether the store may have this chunk: ids of the pool are only in the pool.
[[nodiscard]] constexpr bool may_hold(StoreId store, ChunkId id) {
  return is_pool(id) == (store == kPoolStore);
}
[[nodiscard]] constexpr bool may_hold(StoreId store, ContainerNumber container) {
  return is_pool(container) == (store == kPoolStore);
}

}  // namespace varve::maintain
