// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/ids.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Collects the containers of volumes that a deletion makes dead as a whole. A container is dead if
/// no version from the birth of the first chunk to the death of the volume is left. Not
/// thread-safe.
/// Lifetime: `txn` outlives the object.
class DeadCategories {
 public:
  DeadCategories(const meta::Txn& txn, StoreId store) : txn_(txn), store_(store) {}

  /// Adds the dead containers of a volume. `last`: the newest remaining version that is not newer
  /// than the volume; 0 if there is none.
  [[nodiscard]] Result<void> add(const catalog::SegmentRecord& volume, VersionNumber last);
  [[nodiscard]] bool contains(ContainerNumber container) const {
    return containers_.contains(container);
  }
  /// Notes that the deletion removes a location run of a dead container.
  void take(const catalog::LocationRecord& record);
  /// Returns the location runs in dead containers that were not taken. Reads only the births of
  /// containers with remaining runs.
  [[nodiscard]] Result<std::vector<catalog::LocationRecord>> rest() const;

 private:
  struct Container {
    VersionNumber birth{};
    VersionNumber death{};
    std::uint64_t left_bytes = 0;  // Raw bytes of the remaining runs.
  };

  const meta::Txn& txn_;
  const StoreId store_;
  std::map<ContainerNumber, Container> containers_;
  std::set<ChunkId> taken_;
};

}  // namespace varve::layout
