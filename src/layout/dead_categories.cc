// SPDX-License-Identifier: Apache-2.0
#include "layout/dead_categories.h"

namespace varve::layout {

Result<void> DeadCategories::add(const catalog::SegmentRecord& volume, VersionNumber last) {
  std::uint32_t seen = 0;
  return catalog::for_each_container_from(
      txn_, store_, volume.first_container,
      [&](const format::ContainerRecord& record) -> Result<bool> {
        if (record.segment != volume.segment) return true;
        if (record.birth > last) {
          containers_.insert(record.number);
          births_.insert(record.birth);
        }
        return ++seen < volume.containers;
      });
}

Result<std::vector<catalog::LocationRecord>> DeadCategories::locations() const {
  std::vector<catalog::LocationRecord> found;
  for (const auto birth : births_) {
    VARVE_TRY(
        catalog::for_each_location(txn_, store_, ChunkId::make(birth, 0),
                                   [&](const catalog::LocationRecord& record) -> Result<bool> {
                                     if (record.first.birth() != birth) return false;
                                     if (containers_.contains(record.container))
                                       found.push_back(record);
                                     return true;
                                   }));
  }
  return found;
}

}  // namespace varve::layout
