// SPDX-License-Identifier: Apache-2.0
// Which chunks of some containers of the pool are in use, and by which versions: what code that
// moves chunks of the pool has to know.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/id_runs.h"
#include "base/ids.h"
#include "layout/pool_store.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// The use of some containers, by chunk. Aliases count as their targets.
struct ContainerUse {
  base::IdRuns chunks;                                  ///< All chunks of the containers.
  base::IdRuns live;                                    ///< Chunks that a version uses.
  std::map<PoolOwner, base::IdRuns> of;                 ///< What each version uses.
  std::map<ContainerNumber, std::uint64_t> live_bytes;  ///< Estimated by each run's average.
  /// The chunks of find_use()'s argument `beside` that each version in `of` uses.
  std::map<PoolOwner, base::IdRuns> beside;
};

/// Finds the use of containers of one birth, and what their users use of the chunks `beside`. The
/// caller holds PoolStore::Exclusive.
/// Errors: kCorrupt unless as many versions use each container as it has users.
[[nodiscard]] Result<ContainerUse> find_use(const meta::Txn& txn,
                                            const std::set<ContainerNumber>& containers,
                                            VersionNumber birth, const base::IdRuns& beside);

/// Returns the chunks that are located in the containers.
[[nodiscard]] Result<base::IdRuns> chunks_in(const meta::Txn& txn,
                                             const std::set<ContainerNumber>& containers,
                                             const std::set<VersionNumber>& births);

}  // namespace varve::layout
