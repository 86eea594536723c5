// SPDX-License-Identifier: Apache-2.0
#include "series/pool.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "catalog/alias_table.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "index/pool_indexes.h"
#include "layout/pool_merger.h"
#include "layout/post_pass.h"
#include "maintain/owners.h"
#include "meta/schema.h"
#include "series/index_files.h"
#include "store/repository_names.h"
#include "version/open_references.h"

namespace varve::series {

namespace {

// Returns the chunks of the pool located by the catalog, from an id on, and the aliases.
Result<base::IdRuns> stored_chunks(const meta::Txn& txn, ChunkId from) {
  std::vector<base::IdRun> runs;
  VARVE_TRY(catalog::for_each_location(txn, kPoolStore, std::max(from, kFirstPoolId),
                                       [&](const catalog::LocationRecord& at) -> Result<bool> {
                                         runs.push_back({at.first, at.count});
                                         return true;
                                       }));
  VARVE_TRY(catalog::for_each_alias(txn, [&](const catalog::AliasRecord& alias) -> Result<bool> {
    if (alias.end() > from.value) runs.push_back({alias.run.first, alias.run.count});
    return true;
  }));
  return base::IdRuns::from(std::move(runs));
}

}  // namespace

Result<bool> pool_merging_is_due(const meta::Env& catalog) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  return catalog::pool_merging_is_due(txn);
}

Result<bool> pool_has_containers(const meta::Env& catalog) {
  bool found = false;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY(catalog::for_each_container(txn, kPoolStore,
                                        [&](const format::ContainerRecord&) -> Result<bool> {
                                          found = true;
                                          return false;
                                        }));
  return found;
}

Pool::Pool(const PoolHost& host) : host_(host) {}

Pool::~Pool() = default;

Result<std::unique_ptr<Pool>> Pool::open(const PoolHost& host) {
  std::unique_ptr<Pool> pool(new Pool(host));
  layout::PoolParts parts{*host.catalog, *host.codec, host.compressors, host.open_files,
                          host.metrics,  host.damage, host.read_only,   host.settled};
  // Removes the remains of a crash. On a copy-on-write disk, the removal allocates new blocks.
  VARVE_TRY(host.space->with_reserve([&]() -> Result<void> {
    auto segments = store::open_store(host.open_store, *host.files, host.paths->pool());
    VARVE_TRY_ASSIGN(pool->store_, layout::PoolStore::open(parts, std::move(segments)));
    return {};
  }));
  VARVE_TRY(pool->note_quarantine());
  if (host.read_only) return pool;
  VARVE_TRY_ASSIGN(const bool is_any_open, pool->pin_open_versions());
  VARVE_TRY(host.space->with_reserve([&] { return pool->raise_birth(); }));
  // A version may leave pinned containers whose users were all removed by a deletion.
  if (host.settled && !is_any_open) return pool;
  VARVE_TRY_ASSIGN(const auto unused, pool->store_->unused());
  const auto swept = host.space->with_reserve([&]() -> Result<void> {
    VARVE_TRY(pool->store_->sweep(unused));
    return {};
  });
  if (!swept) {
    base::log(base::LogLevel::kWarning, "pool: " + swept.error().message());
    pool->store_->note_left_behind();
  }
  return pool;
}

Result<void> Pool::note_quarantine() {
  const std::lock_guard lock(quarantine_mutex_);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*host_.catalog));
  VARVE_TRY_ASSIGN(const auto lost, catalog::find_quarantine(txn, kPoolStore));
  VARVE_TRY_ASSIGN(const auto aliases, catalog::aliases_of(txn, lost));
  quarantined_sets_.push_back(std::make_unique<const base::IdRuns>(lost.unite(aliases)));
  quarantined_.store(quarantined_sets_.back().get(), std::memory_order_release);
  quarantine_changed_ = true;
  forget(quarantined());  // New occurrences of lost content are stored again.
  return {};
}

// The catalog may know fewer births than open versions refer to: after a repair, or if the catalog
// is older. A new chunk with the id of a lost chunk would give a file wrong contents.
Result<void> Pool::raise_birth() {
  if (newest_birth_ == VersionNumber{}) return {};
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*host_.catalog));
    VARVE_TRY_ASSIGN(const auto next, catalog::next_pool_birth(txn));
    if (newest_birth_ < next) return {};
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*host_.catalog));
  VARVE_TRY(catalog::raise_pool_birth(txn, newest_birth_));
  return txn.commit();
}

Result<void> Pool::prepare_forecast() {
  if (!host_.read_only) return {};
  const std::lock_guard lock(forecast_mutex_);
  if (knows_pins_) return {};
  VARVE_TRY(pin_open_versions());
  knows_pins_ = true;
  return {};
}

Result<bool> Pool::pin_open_versions() {
  bool is_any_open = false;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*host_.catalog));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    // A crash may leave unfinished copies of versions, numbered below a sealed version.
    VARVE_TRY_ASSIGN(const auto versions, host_.settled
                                              ? catalog::newest_open_versions(txn, series.id)
                                              : catalog::list_versions(txn, series.id));
    for (const auto& version : versions) {
      if (version.state != VersionState::kOpen) continue;
      is_any_open = true;
      const layout::PoolOwner owner{series.id, version.number};
      Ino base_end = 0;
      if (version.base != VersionNumber{}) {
        const auto base = catalog::find_version(txn, series.id, version.base);
        if (base && *base) base_end = (*base)->entries + 2;
      }
      const auto chunks = version::stored_references(
          *host_.files, host_.paths->staging(series.id, version.number),
          meta::overlay_keys(host_.catalog->keys().ring, series.id, version.number), base_end);
      if (chunks && chunks->size() != 0 && is_pool(chunks->runs().back().first)) {
        newest_birth_ = std::max(newest_birth_, chunks->runs().back().first.birth());
      }
      const auto uses = chunks ? catalog::pool_use_of(txn, *chunks)
                               : Result<std::vector<catalog::PoolUse>>(chunks.error());
      if (!uses) {
        base::log(base::LogLevel::kWarning,
                  "cannot find the chunks of " + series.name + "/" + version.name +
                      ", so nothing in the pool is freed until it is sealed or removed: " +
                      uses.error().message());
        store_->pin_all(owner);
        continue;
      }
      for (const auto& use : *uses) static_cast<void>(store_->pin(owner, use.container));
    }
  }
  return is_any_open;
}

Result<index::PoolIndex*> Pool::index() {
  if (host_.read_only) return Error(ErrorCode::kReadOnly, "the repository is open read-only");
  const std::lock_guard lock(index_mutex_);
  if (!index_) {
    auto fingerprints = std::make_unique<ContainerFingerprints>(
        store_->chunks(), "pool", ContainerFingerprints::Unlocated::kFreed);
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*host_.catalog));
    VARVE_TRY_ASSIGN(const auto choice, catalog::find_pool_index(txn));
    const auto count_chunks = [&]() -> Result<std::uint64_t> {
      VARVE_TRY_ASSIGN(const auto all, stored_chunks(txn, kFirstPoolId));
      return all.size();
    };
    VARVE_TRY_ASSIGN(auto index, index::open_pool_index(
                                     choice, pool_index_folder(*host_.files, host_.paths->pool()),
                                     *fingerprints, count_chunks, host_.stream_metrics));
    VARVE_TRY_ASSIGN(const auto newest, stored_chunks(txn, index->saved_until()));
    const auto missing = index->missing(newest);
    index->add_missing(missing);
    if (missing.size() != 0) changed_ = true;  // Else the next process reads the containers again.
    index->forget(quarantined());              // New occurrences of lost content are stored again.
    index_ = std::move(index);
    fingerprints_ = std::move(fingerprints);
  }
  return index_.get();
}

std::vector<PoolStream> Pool::streams() {
  const std::lock_guard lock(index_mutex_);
  return index_ ? index_->streams() : std::vector<PoolStream>();
}

void Pool::note_opened(SeriesId series, const format::Recipe& recipe) {
  std::vector<std::uint64_t> runs;
  for (const auto& run : recipe.runs) {
    if (!run.is_hole() && is_pool(run.first)) runs.push_back(run.count);
  }
  if (runs.empty()) return;
  const std::unique_lock lock(index_mutex_, std::try_to_lock);
  if (lock && index_) index_->note_reads(series, runs);
}

Result<void> Pool::sweep(const std::vector<ContainerNumber>& containers) {
  const auto freed = store_->sweep(containers);
  if (!freed) {
    store_->note_left_behind();
    return freed.error();
  }
  forget(*freed);
  return {};
}

void Pool::forget(const base::IdRuns& freed) {
  const std::lock_guard lock(index_mutex_);
  if (index_ && freed.size() != 0) index_->forget(freed);
}

Result<bool> Pool::merge(layout::PoolMergerParts parts) {
  const std::lock_guard alone(merge_mutex_);
  parts.pool = store_.get();
  parts.catalog = host_.catalog;
  parts.after_step = [this, after_step = std::move(parts.after_step)](
                         const layout::MoveOutcome& step, const base::IdRuns& dropped) {
    forget(dropped);
    if (after_step) after_step(step, dropped);
  };
  auto finished = layout::PoolMerger(std::move(parts)).run();
  if (!finished) store_->note_left_behind();
  return finished;
}

Result<maintain::ParityUpkeep> Pool::keep_parity(const std::function<bool(std::uint64_t)>& pass) {
  const std::lock_guard alone(parity_mutex_);
  return maintain::keep_parity(*host_.catalog, store_->segments(), maintain::kPoolOwner, pass);
}

void Pool::save_index() {
  const std::lock_guard lock(index_mutex_);
  if (!index_ || !changed_.exchange(false)) return;
  const auto save = [&]() -> Result<void> {
    index::PoolChunks chunks;
    VARVE_TRY_ASSIGN(chunks.complete_below, store_->complete_below());
    chunks.from = [&](ChunkId from) -> Result<base::IdRuns> {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*host_.catalog));
      return stored_chunks(txn, from);
    };
    return index_->save(chunks);
  };
  const auto saved = save();
  if (!saved) base::log(base::LogLevel::kWarning, "the pool's index: " + saved.error().message());
}

}  // namespace varve::series
