// SPDX-License-Identifier: Apache-2.0
#include "repo/required_features.h"

#include <algorithm>

#include "base/log.h"
#include "catalog/alias_table.h"
#include "catalog/layout_records.h"
#include "catalog/series_settings.h"
#include "meta/lmdb.h"

namespace varve::repo {

SeriesSettings RequiredFeatures::initial_settings() const {
  return {folder_.superblock.parameters().placement, Rewrite::kNone};
}

// An older Varve takes a record with pool settings for damage. So the superblock on disk names the
// feature before the record is committed. The caller has begun a transaction: the note of a settled
// repository is void, and an opening after a crash compares all labels with the superblock.
Result<void> RequiredFeatures::require_for(const SeriesSettings& settings) {
  if (!catalog::needs_pool_feature(settings) || folder_.superblock.needs_pool()) return {};
  labels_lack_any_ = true;  // Also after a failure, because the file may have changed.
  return folder_.superblock.require_pool();
}

// The setting comes before the first volume with deltas, so the name does, too.
Result<void> RequiredFeatures::require_for(const ArrangeSettings& settings) {
  if (settings.delta == 0 || folder_.superblock.needs_delta()) return {};
  labels_lack_any_ = true;
  return folder_.superblock.require_delta();
}

// As for `pool`, the name of the feature is on disk before any record needs the feature.
Result<bool> RequiredFeatures::require_aliases() {
  if (folder_.superblock.needs_aliases()) return false;
  VARVE_TRY(folder_.catalog.prepare_write());
  labels_lack_any_ = true;
  VARVE_TRY(folder_.superblock.require_aliases());
  return true;
}

// A repository of an earlier Varve gets the feature `marks` from the first writer, whose records
// need `marks`, and in an object store `label-parts`. The other names are missing if a lost
// superblock was repaired from labels that a crash had left without the names.
void RequiredFeatures::complete(const std::vector<SeriesInfo>& all) {
  const bool needed = catalog::needs_pool_feature(initial_settings()) ||
                      std::ranges::any_of(all, [](const SeriesInfo& info) {
                        return catalog::needs_pool_feature({info.placement, info.rewrite});
                      });
  const auto complete = [&]() -> Result<void> {
    bool has_aliases = false;
    bool wants_delta = false;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
      VARVE_TRY(catalog::for_each_alias(txn, [&](const catalog::AliasRecord&) -> Result<bool> {
        has_aliases = true;
        return false;
      }));
      VARVE_TRY_ASSIGN(const auto arrange, catalog::find_arrange_settings(txn));
      wants_delta = arrange.delta != 0;
    }
    const bool lacks_pool = needed && !folder_.superblock.needs_pool();
    const bool lacks_aliases = has_aliases && !folder_.superblock.needs_aliases();
    const bool lacks_marks = !folder_.superblock.needs_marks();
    const bool lacks_delta = wants_delta && !folder_.superblock.needs_delta();
    const bool lacks_parts =
        folder_.storage->evicted() != nullptr && !folder_.superblock.needs_label_parts();
    if (!lacks_pool && !lacks_aliases && !lacks_marks && !lacks_delta && !lacks_parts) return {};
    VARVE_TRY(folder_.settled.clear());
    if (lacks_marks) VARVE_TRY(folder_.superblock.require_marks());
    if (lacks_pool) VARVE_TRY(folder_.superblock.require_pool());
    if (lacks_delta) VARVE_TRY(folder_.superblock.require_delta());
    if (lacks_parts) VARVE_TRY(folder_.superblock.require_label_parts());
    return lacks_aliases ? folder_.superblock.require_aliases() : Result<void>();
  };
  const auto done = complete();
  if (!done)
    base::log(base::LogLevel::kWarning, folder_.paths.superblock() + ": " + done.error().message());
}

}  // namespace varve::repo
