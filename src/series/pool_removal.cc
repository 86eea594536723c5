// SPDX-License-Identifier: Apache-2.0
#include "series/pool_removal.h"

#include <utility>

#include "catalog/pool_records.h"
#include "series/pool.h"

namespace varve::series {

Result<PoolRemoval> PoolRemoval::begin(const SeriesParts& parts, const meta::Txn& txn,
                                       const std::vector<catalog::VersionRecord>& gone) {
  PoolRemoval removal;
  for (const auto& record : gone) {
    VARVE_TRY_ASSIGN(const auto uses, catalog::find_pool_use(txn, record.series, record.number));
    if (!uses.empty()) removal.gone_.push_back({record.series, record.number});
  }
  if (removal.gone_.empty()) return removal;
  VARVE_TRY_ASSIGN(removal.pool_, parts.host->pool());
  VARVE_TRY(removal.pool_->prepare_forecast());
  removal.exclusive_ = std::make_unique<layout::PoolStore::Exclusive>(removal.pool_->store());
  // A snapshot from before the lock could have other users of the containers.
  VARVE_TRY_ASSIGN(auto snapshot, meta::ReadTxn::begin(txn.env()));
  removal.snapshot_ = std::make_unique<meta::ReadTxn>(std::move(snapshot));
  return removal;
}

Result<PoolRemoval> PoolRemoval::plan(const SeriesParts& parts, const meta::Txn& txn,
                                      const std::vector<catalog::VersionRecord>& gone) {
  VARVE_TRY_ASSIGN(auto removal, begin(parts, txn, gone));
  if (removal.gone_.empty()) return removal;
  VARVE_TRY_ASSIGN(auto planned,
                   removal.pool_->store().plan_deletion(*removal.snapshot_, removal.gone_));
  removal.plan_.emplace(std::move(planned));
  removal.retired_ = true;
  return removal;
}

Result<PoolRemoval> PoolRemoval::forecast(const SeriesParts& parts, const meta::Txn& txn,
                                          const std::vector<catalog::VersionRecord>& gone,
                                          const std::vector<VersionKey>& before) {
  VARVE_TRY_ASSIGN(auto removal, begin(parts, txn, gone));
  if (removal.gone_.empty()) return removal;
  std::vector<layout::PoolOwner> others;
  for (const auto& key : before) {
    if (key.series != parts.id) others.push_back({key.series, key.number});
  }
  VARVE_TRY_ASSIGN(auto planned, removal.pool_->store().forecast_deletion(*removal.snapshot_,
                                                                          removal.gone_, others));
  removal.plan_.emplace(std::move(planned));
  return removal;
}

PoolRemoval::PoolRemoval(PoolRemoval&& other) noexcept
    : gone_(std::move(other.gone_)),
      exclusive_(std::move(other.exclusive_)),
      pool_(other.pool_),
      retired_(std::exchange(other.retired_, false)),
      snapshot_(std::move(other.snapshot_)),
      plan_(std::move(other.plan_)) {}

PoolRemoval::~PoolRemoval() {
  if (retired_ && plan_) pool_->store().keep(*plan_);
}

Result<void> PoolRemoval::add_to(DeletionForecast& forecast) const {
  if (!plan_) return {};
  forecast.freed_bytes += plan_->ledger.freed_bytes();
  forecast.chunks += plan_->chunks;
  forecast.chunk_bytes += plan_->chunk_bytes;
  forecast.waiting_bytes += plan_->waiting_bytes;
  if (!plan_->waiting_for || !forecast.waiting_for.empty()) return {};
  const auto& [series, number] = *plan_->waiting_for;
  VARVE_TRY_ASSIGN(const auto owner, catalog::find_series(*snapshot_, series));
  VARVE_TRY_ASSIGN(const auto version, catalog::find_version(*snapshot_, series, number));
  if (owner && version) forecast.waiting_for = owner->name + "/" + version->name;
  return {};
}

Result<void> PoolRemoval::commit(meta::WriteTxn& txn) const {
  return plan_ ? plan_->apply(txn) : Result<void>();
}

Result<void> PoolRemoval::free() {
  if (!plan_) return {};
  pool_->forget(plan_->dead);
  retired_ = false;
  return pool_->store().free(*plan_);
}

}  // namespace varve::series
