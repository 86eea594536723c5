// SPDX-License-Identifier: Apache-2.0
#include "series/unstored_files.h"

#include "maintain/later_state.h"
#include "store/repository_paths.h"
#include "version/unstored_files.h"

namespace varve::series {

Result<LostFiles> find_unstored_files(const maintain::OpenVersionsAt& at,
                                      const catalog::VersionRecord& version) {
  version::StagedVersion staged;
  if (version.base != VersionNumber{}) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(at.catalog));
    VARVE_TRY_ASSIGN(const auto base, catalog::find_version(txn, version.series, version.base));
    if (!base) return LostFiles{};
    staged.base_end = base->entries + 2;
  }
  staged.staging_directory =
      store::RepositoryPaths(at.repository_path).staging(version.series, version.number);
  staged.series = version.series;
  staged.number = version.number;
  staged.keys = at.keys;
  return version::find_unstored_files(
      at.files, staged, [&](const base::IdRuns& chunks) -> Result<base::IdRuns> {
        VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(at.catalog));
        return maintain::located_chunks(txn, version.series, chunks);
      });
}

}  // namespace varve::series
