// SPDX-License-Identifier: Apache-2.0
#include "series/pool_policy.h"

#include <utility>

#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "ingest/rewrite_policy.h"

namespace varve::series {

Result<std::vector<ingest::ContainerUse>> containers_used(const meta::Txn& txn, SeriesId series,
                                                          VersionNumber number) {
  std::vector<ingest::ContainerUse> used;
  VARVE_TRY_ASSIGN(const auto uses, catalog::find_pool_use(txn, series, number));
  for (const auto& use : uses) {
    VARVE_TRY_ASSIGN(const auto container, catalog::find_container(txn, kPoolStore, use.container));
    if (container) used.push_back({use.container, use.bytes, container->raw_bytes});
  }
  return used;
}

Result<std::unique_ptr<ingest::PlacementPolicy>> pool_policy(const SeriesParts& parts,
                                                             const catalog::SeriesRecord& owner) {
  ingest::RewriteInput input;
  if (owner.rewrite != Rewrite::kNone) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
    VARVE_TRY_ASSIGN(const auto newest, catalog::newest_sealed_version(txn, parts.id));
    if (newest) {
      input.logical_bytes = newest->logical_bytes;
      VARVE_TRY_ASSIGN(input.containers, containers_used(txn, parts.id, newest->number));
    }
  }
  return std::make_unique<ingest::PlacementPolicy>(
      owner.placement, ingest::make_rewrite_policy(owner.rewrite, input), &parts.metrics->pool);
}

}  // namespace varve::series
