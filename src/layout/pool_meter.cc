// SPDX-License-Identifier: Apache-2.0
#include "layout/pool_meter.h"

#include <algorithm>

#include "catalog/location_table.h"

namespace varve::layout {

Result<const PoolMeter::Container*> PoolMeter::find(ContainerNumber number) {
  const auto known = known_.find(number);
  if (known != known_.end()) return &known->second;
  Container found;
  VARVE_TRY_ASSIGN(found.users, catalog::find_pool_users(txn_, number));
  VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn_, kPoolStore, number));
  if (record) {
    found.stored_bytes = record->end() - record->offset;
    found.raw_bytes = record->live_bytes;
  }
  found.pinned = is_pinned_(number);
  return &known_.emplace(number, found).first->second;
}

Result<PoolShare> PoolMeter::measure(const PoolOwner& owner) {
  PoolShare share;
  VARVE_TRY_ASSIGN(const auto uses, catalog::find_pool_use(txn_, owner.series, owner.version));
  for (const auto& use : uses) {
    share.raw_bytes += use.bytes;
    VARVE_TRY_ASSIGN(const auto* const container, find(use.container));
    if (container->users != 1 || container->pinned) continue;
    share.lone_raw_bytes += std::min(use.bytes, container->raw_bytes);
    share.freed_bytes += container->stored_bytes;
  }
  return share;
}

}  // namespace varve::layout
