// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "base/ids.h"
#include "catalog/pool_records.h"
#include "layout/pool_store.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::layout {

/// A version's share of the pool, in bytes.
struct PoolShare {
  std::uint64_t raw_bytes = 0;       ///< Raw size of the chunks to which the version refers.
  std::uint64_t lone_raw_bytes = 0;  ///< Raw size in containers without another user.
  std::uint64_t freed_bytes = 0;     ///< Stored size of the containers without another user.
};

/// Measures versions, each as if deleted alone. Not thread-safe. Memory: about 50 bytes for each
/// container used by the measured versions.
class PoolMeter {
 public:
  /// `is_pinned` returns whether an open version holds a container.
  /// Lifetime: `txn` outlives the meter.
  PoolMeter(const meta::Txn& txn, std::function<bool(ContainerNumber)> is_pinned)
      : txn_(txn), is_pinned_(std::move(is_pinned)) {}

  [[nodiscard]] Result<PoolShare> measure(const PoolOwner& owner);

 private:
  struct Container {
    std::uint32_t users = 0;
    std::uint64_t stored_bytes = 0;
    std::uint64_t raw_bytes = 0;
    bool pinned = false;
  };
  [[nodiscard]] Result<const Container*> find(ContainerNumber number);

  const meta::Txn& txn_;
  const std::function<bool(ContainerNumber)> is_pinned_;
  std::map<ContainerNumber, Container> known_;
};

}  // namespace varve::layout
