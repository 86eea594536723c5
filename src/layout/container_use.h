// SPDX-License-Identifier: Apache-2.0
// The use of some containers of the pool: the chunks in use, and their users among the versions.
// Needed to move chunks of the pool.
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

/// The use of some containers, by chunk. An alias counts as its target.
struct ContainerUse {
  base::IdRuns chunks;                                  ///< All chunks of the containers.
  base::IdRuns live;                                    ///< Chunks that a version uses.
  std::map<PoolOwner, base::IdRuns> of;                 ///< Chunks used by each version.
  std::map<ContainerNumber, std::uint64_t> live_bytes;  ///< Estimated by each run's average.
  /// The chunks of find_use()'s argument `beside` used by each version in `of`.
  std::map<PoolOwner, base::IdRuns> beside;
};

/// Finds the use of containers of one birth, and the users' use of the chunks `beside`. The caller
/// holds PoolStore::Exclusive.
/// Errors: kCorrupt unless the number of versions using each container equals the container's
/// recorded number of users.
[[nodiscard]] Result<ContainerUse> find_use(const meta::Txn& txn,
                                            const std::set<ContainerNumber>& containers,
                                            VersionNumber birth, const base::IdRuns& beside);

/// Returns the chunks located in the containers.
[[nodiscard]] Result<base::IdRuns> chunks_in(const meta::Txn& txn,
                                             const std::set<ContainerNumber>& containers,
                                             const std::set<VersionNumber>& births);

}  // namespace varve::layout
