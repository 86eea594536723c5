// SPDX-License-Identifier: Apache-2.0
// The part of a series for checks and repairs: an open version, the index, manifests and lost
// chunks.
#include "series/series.h"

#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "series/index_files.h"
#include "series/lineage_index.h"
#include "series/lineage_open.h"
#include "series/series_state.h"
#include "series/version_records.h"
#include "version/open_version_check.h"

namespace varve::series {

Manifests& Series::manifests() { return state_->manifests; }

Result<version::StagedState> Series::read_staged_state(VersionNumber number) {
  version::StagedVersion staged;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*state_->parts.catalog));
    VARVE_TRY_ASSIGN(const auto record, catalog::find_version(txn, state_->parts.id, number));
    if (!record) return no_version();
    if (record->base != VersionNumber{}) {
      VARVE_TRY_ASSIGN(const auto base, catalog::find_version(txn, state_->parts.id, record->base));
      if (!base) return no_version();
      staged.base_end = base->entries + 2;
    }
  }
  staged.staging_directory = state_->parts.paths->staging(state_->parts.id, number);
  staged.series = state_->parts.id;
  staged.number = number;
  staged.keys = state_->parts.codecs->keys();
  return version::read_staged_state(*state_->parts.files, staged);
}

Result<std::uint64_t> Series::lost_chunks_stamp() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*state_->parts.catalog));
  VARVE_TRY_ASSIGN(const auto own, catalog::find_quarantine(txn, state_->parts.store));
  VARVE_TRY_ASSIGN(const auto shared, catalog::find_quarantine(txn, kPoolStore));
  const auto lost = own.unite(shared);
  if (lost.size() == 0) return std::uint64_t{0};
  std::string runs;
  lost.encode(runs);
  return base::checksum64(base::as_bytes(runs));
}

// An unloaded version finds the quarantine in the catalog.
void Series::hide(const base::IdRuns& lost) {
  auto* const use = state_->loaded();
  if (use == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  if (use->open.version()) (void)use->open.index().retire(lost);
}

}  // namespace varve::series
