// SPDX-License-Identifier: Apache-2.0
// The part of a series for checks: an open version, the index, and lost chunks.
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "series/index_files.h"
#include "series/lineage_index.h"
#include "series/lineage_loaded.h"
#include "series/lineage_open.h"
#include "series/lineage_series.h"
#include "series/version_records.h"
#include "version/open_version_check.h"

namespace varve::series {

Result<void> LineageSeries::verify_index(VersionNumber newest) {
  return verify_index_files(parts_, newest);
}

Result<version::StagedState> LineageSeries::read_staged_state(VersionNumber number) {
  version::StagedVersion staged;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(const auto record, catalog::find_version(txn, parts_.id, number));
    if (!record) return no_version();
    if (record->base != VersionNumber{}) {
      VARVE_TRY_ASSIGN(const auto base, catalog::find_version(txn, parts_.id, record->base));
      if (!base) return no_version();
      staged.base_end = base->entries + 2;
    }
  }
  staged.staging_directory = parts_.paths->staging(parts_.id, number);
  staged.series = parts_.id;
  staged.number = number;
  staged.keys = parts_.codecs->keys();
  return version::read_staged_state(*parts_.files, staged);
}

Result<std::uint64_t> LineageSeries::lost_chunks_stamp() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto own, catalog::find_quarantine(txn, parts_.store));
  VARVE_TRY_ASSIGN(const auto shared, catalog::find_quarantine(txn, kPoolStore));
  const auto lost = own.unite(shared);
  if (lost.size() == 0) return std::uint64_t{0};
  std::string runs;
  lost.encode(runs);
  return base::checksum64(base::as_bytes(runs));
}

// An unloaded version finds the quarantine in the catalog.
void LineageSeries::hide(const base::IdRuns& lost) {
  auto* const use = loaded();
  if (use == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (use->open.version()) (void)use->open.index().retire(lost);
}

}  // namespace varve::series
