// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "base/ids.h"
#include "catalog/layout_records.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Tells which containers lie in the active set. Lifetime: `txn` outlives the object.
class ContainerRoles {
 public:
  ContainerRoles(const meta::Txn& txn, StoreId store) : txn_(txn), store_(store) {}

  /// Must be called for every segment and volume of the store, before is_active().
  void add(const catalog::SegmentRecord& segment) { role_of_[segment.segment] = segment.role; }
  /// Returns false for a container of a volume. Errors: kCorrupt if the catalog lacks a record.
  [[nodiscard]] Result<bool> is_active(ContainerNumber container) const {
    VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn_, store_, container));
    const auto role = record ? role_of_.find(record->segment) : role_of_.end();
    if (role == role_of_.end()) {
      return Error(ErrorCode::kCorrupt, "catalog: a container's record is missing");
    }
    return role->second != catalog::SegmentRole::kVolume;
  }

 private:
  const meta::Txn& txn_;
  const StoreId store_;
  std::map<SegmentNumber, catalog::SegmentRole> role_of_;
};

}  // namespace varve::layout
