// SPDX-License-Identifier: Apache-2.0
#include "series/staging.h"

#include "maintain/open_version_fault.h"
#include "meta/lmdb.h"
#include "store/repository_names.h"

namespace varve::series {

Result<void> check_staging(const SeriesParts& parts, const catalog::VersionRecord& record) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  VARVE_TRY_ASSIGN(const bool lost,
                   maintain::is_staging_lost(*parts.files, parts.paths->root(), txn, record));
  if (!lost) return {};
  return Error(ErrorCode::kCorrupt, parts.paths->staging(parts.id, record.number) +
                                        " is missing, so what the open version " + record.name +
                                        " held is lost; `varve repair` drops it");
}

Result<void> remove_staging(const SeriesParts& parts, const catalog::VersionRecord& record) {
  return store::remove_folder(*parts.files, parts.paths->staging(parts.id, record.number),
                              store::FolderKind::kOpenVersion);
}

}  // namespace varve::series
