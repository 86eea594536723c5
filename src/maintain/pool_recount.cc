// SPDX-License-Identifier: Apache-2.0
#include "maintain/pool_recount.h"

#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "maintain/write_batch.h"

namespace varve::maintain {

Result<void> PoolRecount::add(meta::WriteTxn& txn, SeriesId series, VersionNumber number) {
  const auto chunks = catalog::version_chunks(txn, series, number);
  auto recorded = catalog::find_pool_use(txn, series, number);
  if (chunks) {
    VARVE_TRY_ASSIGN(auto uses, catalog::pool_use_of(txn, *chunks));
    if (!recorded || *recorded != uses) {
      VARVE_TRY(catalog::put_pool_use(txn, series, number, uses));
    }
    recorded = std::move(uses);
  }
  if (!recorded) return std::move(recorded).error();
  for (const auto& use : *recorded) ++users_[use.container];
  return {};
}

Result<void> PoolRecount::finish(meta::WriteTxn& txn) const {
  auto wrong = users_;
  VARVE_TRY(catalog::for_each_pool_users(
      txn, [&](ContainerNumber container, std::uint32_t recorded) -> Result<bool> {
        const auto counted = wrong.find(container);
        if (counted == wrong.end()) {
          wrong[container] = 0;
        } else if (counted->second == recorded) {
          wrong.erase(counted);
        }
        return true;
      }));
  for (const auto& [container, users] : wrong) {
    VARVE_TRY(catalog::put_pool_users(txn, container, users));
  }
  return {};
}

Result<void> recount_pool(meta::WriteTxn& txn) {
  PoolRecount recount;
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series.id));
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      VARVE_TRY(recount.add(txn, series.id, version.number));
    }
  }
  return recount.finish(txn);
}

Result<void> recount_pool(const meta::Env& catalog, const std::vector<SeriesId>& series,
                          std::size_t containers) {
  // A version's list has about 4 bytes for each container.
  constexpr std::size_t kUseBytes = 4;
  const std::size_t bytes = 1024 + containers * kUseBytes;
  PoolRecount recount;
  WriteBatch batch(catalog);
  for (const auto one : series) {
    std::vector<catalog::VersionRecord> versions;
    {
      VARVE_TRY_ASSIGN(auto* const txn, batch.txn(0));
      VARVE_TRY_ASSIGN(versions, catalog::list_versions(*txn, one));
    }
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      VARVE_TRY_ASSIGN(auto* const txn, batch.txn(bytes));
      VARVE_TRY(recount.add(*txn, one, version.number));
    }
  }
  VARVE_TRY_ASSIGN(auto* const txn, batch.txn(bytes));
  VARVE_TRY(recount.finish(*txn));
  return batch.commit();
}

}  // namespace varve::maintain
