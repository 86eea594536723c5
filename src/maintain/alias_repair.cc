// SPDX-License-Identifier: Apache-2.0
#include "maintain/alias_repair.h"

#include <optional>
#include <utility>

#include "catalog/alias_table.h"
#include "layout/post_pass.h"
#include "layout/stored_chunks.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"

namespace varve::maintain {

Result<void> AliasRepair::scan(const meta::Env& catalog) {
  const auto folder = scope_.stores.folder_of(kPoolOwner);
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(const bool present, has_pool(txn));
    if (!present) return {};
  }
  VARVE_TRY_ASSIGN(const auto found,
                   check_alias_files(catalog, {&scope_.files, folder}, scope_.stores.of(kPoolOwner),
                                     scope_.codecs.frames().keys()));
  for (const auto& fault : found.faults) {
    scope_.add_step(RepairStep::Kind::kAliases, fault.where, fault.what);
    is_needed_ = true;
  }
  wrong_ = found.wrong;
  return {};
}

Result<void> AliasRepair::execute(const meta::Env& catalog) const {
  if (!is_needed_) return {};
  const auto folder = scope_.stores.folder_of(kPoolOwner);
  if (wrong_.size() != 0) {
    // No reader may get the content of another chunk.
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
    VARVE_TRY(catalog::erase_aliases(txn, wrong_));
    VARVE_TRY(txn.commit());
  }
  layout::StoredChunks chunks(catalog, scope_.stores.of(kPoolOwner), scope_.codecs.frames(),
                              kPoolStore, nullptr);
  return layout::tidy_alias_files(catalog, chunks, {&scope_.files, folder}, std::nullopt);
}

}  // namespace varve::maintain
