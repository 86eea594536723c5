// SPDX-License-Identifier: Apache-2.0
// Rebuilds the records of the pool.
#include <algorithm>
#include <cstdint>

#include "catalog/alias_table.h"
#include "catalog/pool_records.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"
#include "maintain/pool_recount.h"
#include "maintain/write_batch.h"

namespace varve::maintain {

namespace {

// Number of births skipped if an unknown birth may have been given: a lost container or a damaged
// manifest may have had the birth, and an open version may refer to the birth.
constexpr std::uint64_t kBirthsSkipped = std::uint64_t{1} << 16;

}  // namespace

Result<void> CatalogRebuilder::scan_pool() {
  const auto segments = open_store(kPoolOwner);
  auto& store = *segments;
  VARVE_TRY_ASSIGN(pool_.scan, scan(store, kPoolStore));
  VARVE_TRY(note_pool_births());
  for (const auto& fault : pool_.births.choose(pool_.scan)) {
    VARVE_TRY(leave_out(store.describe(), fault));
  }
  drop_repeated_numbers(pool_.scan, store);
  pool_.runs = runs_by_birth(pool_.scan);
  pool_.whole = pool_.scan.unread.empty() && pool_.scan.repeated.empty() && whole_;
  for (const auto& found : pool_.scan.containers) {
    for (const auto& run : found.runs) {
      pool_.last_birth = std::max(pool_.last_birth, std::optional(run.first.birth()));
    }
  }
  return {};
}

void CatalogRebuilder::note_births(std::string_view chunks) {
  const auto decoded = base::IdRuns::decode(chunks);
  if (!decoded || decoded->size() == 0 || !is_pool(decoded->runs().back().first)) return;
  pool_.last_birth =
      std::max(pool_.last_birth, std::optional(decoded->runs().back().first.birth()));
}

void CatalogRebuilder::note_next_birth(std::string_view setting) {
  const auto next = catalog::decode_pool_birth(setting);
  if (!next) return;
  const auto number = static_cast<std::uint32_t>(*next);
  if (number == kPoolBit) return;
  pool_.last_birth =
      std::max(pool_.last_birth, std::optional(static_cast<VersionNumber>(number - 1)));
}

void CatalogRebuilder::add_to_pool() {
  pool_.whole = pool_.whole && whole_ && open_.empty();
  for (const auto& [number, chunks] : chunks_of_) {
    const auto shared = catalog::pool_part(chunks);
    if (shared.size() == 0) continue;
    pool_.last_birth =
        std::max(pool_.last_birth, std::optional(shared.runs().back().first.birth()));
    pool_.wanted = pool_.wanted.unite(shared);
  }
}

// A chunk stored in a container is no alias, whatever a file says.
Result<void> CatalogRebuilder::put_aliases() {
  const store::FolderPath folder{&files_, series_directory(kPoolOwner)};
  VARVE_TRY_ASSIGN(const auto found, find_aliases(folder, pool_.scan, pool_.births));
  for (const auto& what : found.problems) problem(what);
  pool_.whole = pool_.whole && found.problems.empty();
  if (found.named.size() != 0) {
    const auto last = found.named.runs().back().first.birth();
    pool_.last_birth = std::max(pool_.last_birth, std::optional(last));
  }
  std::vector<base::IdRun> targets;
  WriteBatch batch(catalog_);
  for (const auto& record : found.records) {
    // Unless data is missing, the versions no longer need aliases outside `wanted`.
    const base::IdRun run{record.run.first, record.run.count};
    if (pool_.whole && !pool_.wanted.overlaps(run)) continue;
    constexpr std::size_t kRecordBytes = 64;
    VARVE_TRY_ASSIGN(auto* const txn, batch.txn(kRecordBytes));
    VARVE_TRY(catalog::put_alias(*txn, record));
    targets.push_back(record.targets());
  }
  VARVE_TRY(batch.commit());
  pool_.wanted = pool_.wanted.unite(base::IdRuns::from(std::move(targets)));
  return {};
}

Result<void> CatalogRebuilder::put_pool() {
  VARVE_TRY(put_aliases());
  if (!pool_.last_birth && pool_.scan.unread.empty()) return {};
  owner_.reset();
  versions_.clear();
  open_.clear();
  chunks_of_ = {{VersionNumber{1}, pool_.wanted}};
  whole_ = pool_.whole;
  const auto segments = open_store(kPoolOwner);
  auto& store = *segments;
  VARVE_TRY(put_locations(kPoolOwner, store, pool_.scan));
  VARVE_TRY(pool_.births.put(catalog_, kPoolStore));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  auto birth = std::uint64_t{
      static_cast<std::uint32_t>(pool_.last_birth.value_or(static_cast<VersionNumber>(kPoolBit)))};
  if (!whole_) birth += kBirthsSkipped;
  birth = std::min<std::uint64_t>(birth, UINT32_MAX);
  VARVE_TRY(catalog::raise_pool_birth(txn, static_cast<VersionNumber>(birth)));
  VARVE_TRY(txn.commit());
  return put_pool_users();
}

Result<void> CatalogRebuilder::put_pool_users() {
  // A version's list has about 4 bytes for each container.
  constexpr std::size_t kUseBytes = 4;
  const std::size_t bytes = 1024 + pool_.scan.containers.size() * kUseBytes;
  PoolRecount recount;
  WriteBatch batch(catalog_);
  for (const auto series : done_) {
    std::vector<catalog::VersionRecord> versions;
    {
      VARVE_TRY_ASSIGN(auto* const txn, batch.txn(0));
      VARVE_TRY_ASSIGN(versions, catalog::list_versions(*txn, series));
    }
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      VARVE_TRY_ASSIGN(auto* const txn, batch.txn(bytes));
      VARVE_TRY(recount.add(*txn, series, version.number));
    }
  }
  VARVE_TRY_ASSIGN(auto* const txn, batch.txn(bytes));
  VARVE_TRY(recount.finish(*txn));
  return batch.commit();
}

}  // namespace varve::maintain
