// SPDX-License-Identifier: Apache-2.0
#include "layout/lone_deletion.h"

#include <utility>

#include "catalog/location_table.h"
#include "layout/dead_categories.h"

namespace varve::layout {

Result<LoneDeletion> LoneDeletion::open(CategoryLayout& layout, const meta::Txn& txn,
                                        const std::vector<LiveVersion>& versions) {
  LoneDeletion opened(layout, txn, versions);
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(txn, layout.options().store));
  for (const auto& segment : segments) {
    if (segment.active()) continue;
    opened.volumes_[newest_at_most(versions, segment.version)].push_back(segment);
  }
  return opened;
}

Result<DeletionPlan> LoneDeletion::plan(VersionNumber number, base::IdRuns lone) {
  const StoreId store = layout_.options().store;
  DeletionPlan plan{SegmentLedger(txn_, store), 0, 0, std::move(lone), {}, 0};
  DeadCategories archive(txn_, store);
  if (const auto volumes = volumes_.find(number); volumes != volumes_.end()) {
    const auto before = static_cast<VersionNumber>(static_cast<std::uint32_t>(number) - 1);
    for (const auto& volume : volumes->second) {
      VARVE_TRY(archive.add(volume, newest_at_most(versions_, before)));
    }
  }
  VARVE_TRY(remove_chunks(layout_, txn_, plan.dead, archive, plan));
  VARVE_TRY(plan.ledger.finish());
  return plan;
}

}  // namespace varve::layout
