// SPDX-License-Identifier: Apache-2.0
#include "series/pool_seal.h"

#include <fmt/core.h>

#include <memory>

#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "series/pool.h"

namespace varve::series {

Result<PoolSeal> PoolSeal::begin(const SeriesParts& parts, catalog::VersionRecord& record,
                                 const base::IdRuns& chunks, std::optional<VersionNumber> base) {
  PoolSeal seal;
  seal.owner_ = {parts.id, record.number};
  if (catalog::pool_part(chunks).size() == 0) return seal;
  VARVE_TRY_ASSIGN(auto* const pool, parts.host->pool());
  seal.store_ = &pool->store();
  seal.exclusive_ = std::make_unique<layout::PoolStore::Exclusive>(pool->store());
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  base::IdRuns lost;
  VARVE_TRY_ASSIGN(seal.uses_, catalog::pool_use_of(txn, chunks, &lost));
  if (lost.size() != 0 && base) {
    // Chunks already lost in the base do not count: a check reports the loss.
    VARVE_TRY_ASSIGN(const auto before, catalog::version_chunks(txn, parts.id, *base));
    VARVE_TRY_ASSIGN(const auto stored_before, catalog::stored_ids(txn, before));
    lost = lost.subtract(stored_before);
  }
  if (lost.size() != 0) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} chunks of {} are not stored in the pool; copy its new files again",
                             lost.size(), record.name));
  }
  for (const auto& use : seal.uses_) {
    VARVE_TRY_ASSIGN(const auto users, catalog::find_pool_users(txn, use.container));
    if (users != 0) continue;
    VARVE_TRY_ASSIGN(const auto container, catalog::find_container(txn, kPoolStore, use.container));
    record.unique_bytes += use.bytes;
    if (container) record.stored_bytes += container->end() - container->offset;
  }
  return seal;
}

Result<void> PoolSeal::commit(meta::WriteTxn& txn) {
  // A version may use none of its stored chunks.
  if (store_ == nullptr) return catalog::put_pool_use(txn, owner_.series, owner_.version, {});
  return store_->add_users(txn, owner_, uses_);
}

}  // namespace varve::series
