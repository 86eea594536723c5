// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "base/ids.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Collects the categories of volumes that a deletion makes dead. Cat(i,j) is dead if no version
/// from i to j is left. Not thread-safe. Lifetime: `txn` outlives the object.
class DeadCategories {
 public:
  DeadCategories(const meta::Txn& txn, StoreId store) : txn_(txn), store_(store) {}

  /// Adds the dead categories of a volume. `last` is the newest version left that is not newer than
  /// the volume; 0 if there is none.
  [[nodiscard]] Result<void> add(const catalog::SegmentRecord& volume, VersionNumber last);
  /// Returns the location runs of the chunks in the categories, ascending.
  [[nodiscard]] Result<std::vector<catalog::LocationRecord>> locations() const;

 private:
  const meta::Txn& txn_;
  const StoreId store_;
  std::set<ContainerNumber> containers_;
  std::set<VersionNumber> births_;
};

}  // namespace varve::layout
