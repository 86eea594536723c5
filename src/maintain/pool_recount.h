// SPDX-License-Identifier: Apache-2.0
// Makes the records of the pool's users again from the chunks of the versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Counts the sealed versions that use each container of the pool, and corrects the versions' lists
/// of containers. For one use by one thread. Memory: about 50 bytes per container.
class PoolRecount {
 public:
  /// Writes the list of a sealed version's containers, unless the present list is right. Keeps the
  /// present list if the record of the version's chunks is damaged.
  [[nodiscard]] Result<void> add(meta::WriteTxn& txn, SeriesId series, VersionNumber number);
  /// Corrects wrong numbers of users. The caller has added all sealed versions.
  [[nodiscard]] Result<void> finish(meta::WriteTxn& txn) const;

 private:
  std::map<ContainerNumber, std::uint32_t> users_;
};

/// Does both for all sealed versions.
[[nodiscard]] Result<void> recount_pool(meta::WriteTxn& txn);
/// Does both for the sealed versions of some series, in transactions of bounded size. `containers`:
/// number of containers in the pool.
[[nodiscard]] Result<void> recount_pool(const meta::Env& catalog,
                                        const std::vector<SeriesId>& series,
                                        std::size_t containers);

}  // namespace varve::maintain
