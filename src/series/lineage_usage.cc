// SPDX-License-Identifier: Apache-2.0
// Measures sealed versions, each as if it alone were deleted. LineageDeletion forecasts the same
// for a set of versions, but reads the records of all versions each time.
#include "series/lineage_usage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "catalog/layout_records.h"
#include "catalog/object_store.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "layout/category_layout.h"
#include "layout/chunk_use.h"
#include "layout/lone_deletion.h"
#include "layout/pool_meter.h"
#include "series/index_files.h"
#include "series/lone_manifests.h"
#include "series/pool.h"
#include "series/seal_clock.h"
#include "series/version_records.h"

namespace varve::series {

namespace {

using layout::CategoryLayout;

/// Measures the versions of one snapshot.
class UsageMeter {
 public:
  UsageMeter(const SeriesParts& parts, LineageStore& store, const meta::Txn& txn)
      : parts_(parts), store_(store), txn_(txn), locks_(parts, txn) {}

  Result<std::vector<VersionUsage>> run(const layout::OpenHold& hold,
                                        std::optional<VersionNumber> only) {
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn_, parts_.id));
    VARVE_TRY(read_versions(records));
    VARVE_TRY_ASSIGN(
        auto uses, layout::measure_chunk_use(txn_, parts_.id, parts_.store, versions_, hold, only));
    VARVE_TRY_ASSIGN(auto deletion, layout::LoneDeletion::open(*store_.layout, txn_, versions_));
    VARVE_TRY_ASSIGN(const auto manifests, LoneManifests::open(parts_, txn_, records));
    std::vector<VersionUsage> all;
    for (auto& use : uses) {
      VARVE_TRY_ASSIGN(const auto plan, deletion.plan(use.number, std::move(use.lone)));
      unread_ = unread_ || plan.unread != 0;
      VARVE_TRY_ASSIGN(const auto shared, measure_in_pool(use.number));
      use.raw_bytes += shared.raw_bytes;
      const auto lone_bytes = plan.chunk_bytes + shared.lone_raw_bytes;
      VersionUsage usage;
      usage.number = use.number;
      usage.logical_bytes = record_of_.at(use.number)->logical_bytes;
      usage.referenced_bytes = use.raw_bytes;
      usage.shared_bytes = use.raw_bytes - std::min(use.raw_bytes, lone_bytes);
      VARVE_TRY_ASSIGN(const auto index,
                       plan_index_files(parts_, records, {*record_of_.at(use.number)}));
      usage.unique_bytes =
          plan.ledger.freed_bytes() + shared.freed_bytes + index.freed_bytes +
          manifests->bytes(use.number, open_chunks_without(open_chunks_, plan.dead));
      const auto& retention = retention_of_.at(use.number);
      usage.side = retention.side;
      usage.locked_until = retention.locked_until;
      VARVE_TRY_ASSIGN(usage.lock_holds, locks_.holds(retention.locked_until));
      if (const auto clone = clone_of_.find(use.number); clone != clone_of_.end()) {
        usage.base_of = clone->second;
      }
      all.push_back(std::move(usage));
    }
    return all;
  }

  /// Returns true if a figure is too low, because a container's table could not be read.
  [[nodiscard]] bool unread() const { return unread_; }

 private:
  Result<void> read_versions(const std::vector<catalog::VersionRecord>& records) {
    for (const auto& record : records) {
      VARVE_TRY_ASSIGN(const auto retention,
                       catalog::find_retention(txn_, parts_.id, record.number));
      const bool sealed = record.state == VersionState::kSealed;
      versions_.push_back({record.number, sealed, retention.side});
      record_of_[record.number] = &record;
      retention_of_[record.number] = retention;
      if (sealed) continue;
      clone_of_.try_emplace(record.base, record.name);
      VARVE_TRY_ASSIGN(open_chunks_[record.number],
                       layout::protected_chunks(txn_, parts_.id, versions_.back()));
    }
    return {};
  }

  /// Returns the version's share of the pool. Opens the pool only if a version uses it.
  Result<layout::PoolShare> measure_in_pool(VersionNumber number) {
    if (!pool_) {
      VARVE_TRY_ASSIGN(const auto uses, catalog::find_pool_use(txn_, parts_.id, number));
      if (uses.empty()) return layout::PoolShare{};
      VARVE_TRY_ASSIGN(auto* const pool, parts_.host->pool());
      pool_.emplace(
          txn_, [pool](ContainerNumber container) { return pool->store().is_pinned(container); });
    }
    return pool_->measure({parts_.id, number});
  }

  const SeriesParts& parts_;
  LineageStore& store_;
  const meta::Txn& txn_;
  LockWatch locks_;
  std::vector<layout::LiveVersion> versions_;
  std::map<VersionNumber, const catalog::VersionRecord*> record_of_;
  std::map<VersionNumber, catalog::RetentionRecord> retention_of_;
  std::map<VersionNumber, std::string> clone_of_;
  OpenChunks open_chunks_;
  std::optional<layout::PoolMeter> pool_;
  bool unread_ = false;
};

}  // namespace

Result<std::vector<VersionUsage>> measure_usage(const SeriesParts& parts, LineageStore& store,
                                                const layout::OpenHold& hold,
                                                std::optional<VersionNumber> only) {
  VARVE_TRY(VersionRecords(*parts.catalog, parts.id).owner());
  // Arranging may move chunks named by a snapshot. Then a later snapshot is measured; the last
  // attempt runs without arranging.
  constexpr int kAttempts = 3;
  std::optional<CategoryLayout::Exclusive> exclusive;
  for (int attempt = 1;; ++attempt) {
    const bool last = attempt == kAttempts;
    if (last) exclusive.emplace(*store.layout, CategoryLayout::Exclusive::For::kDeleting);
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
    UsageMeter meter(parts, store, txn);
    auto measured = meter.run(hold, only);
    if (last || !measured || !meter.unread()) return measured;
    VARVE_TRY_ASSIGN(const auto now, meta::ReadTxn::begin(*parts.catalog));
    if (now.id() == txn.id()) return measured;
  }
}

Result<std::vector<VersionLock>> version_locks(const SeriesParts& parts) {
  VARVE_TRY(VersionRecords(*parts.catalog, parts.id).owner());
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  LockWatch watch(parts, txn);
  std::vector<VersionLock> locks;
  VARVE_TRY(catalog::for_each_retention(
      txn, parts.id,
      [&](VersionNumber number, const catalog::RetentionRecord& retention) -> Result<bool> {
        if (retention.locked_until == Timestamp{}) return true;
        VARVE_TRY_ASSIGN(const bool holds, watch.holds(retention.locked_until));
        locks.push_back({number, retention.locked_until, holds});
        return true;
      }));
  return locks;
}

}  // namespace varve::series
