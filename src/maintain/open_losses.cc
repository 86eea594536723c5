// SPDX-License-Identifier: Apache-2.0
#include "maintain/open_losses.h"

#include <fmt/core.h>

#include <utility>

#include "base/system_error.h"
#include "maintain/open_version_fault.h"

namespace varve::maintain {

Result<std::vector<OpenLoss>> find_open_losses(const OpenVersionsAt& at,
                                               const FindUnstoredFiles& find, bool locked) {
  std::vector<OpenLoss> losses;
  if (!find) return losses;
  std::vector<catalog::SeriesRecord> all;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(at.catalog));
    VARVE_TRY_ASSIGN(all, catalog::list_series(txn));
  }
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(at.catalog));
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
    for (const auto& record : records) {
      if (record.state != VersionState::kOpen || record.unfinished) continue;
      VARVE_TRY_ASSIGN(const auto fault,
                       fault_of_open_version(at.files, at.repository_path, txn, record, locked));
      if (fault) continue;
      auto files = find(at, record);
      if (!files && base::lacks_resources(files.error())) return files.error();
      if (!files || files->files == 0) continue;
      // Without the lock, a writer may have sealed or removed the version meanwhile.
      VARVE_TRY_ASSIGN(const auto now, meta::ReadTxn::begin(at.catalog));
      VARVE_TRY_ASSIGN(const auto still, catalog::find_version(now, series.id, record.number));
      if (!still || still->state != VersionState::kOpen) continue;
      losses.push_back({record, series.name + "/" + record.name, *std::move(files)});
    }
  }
  return losses;
}

std::string describe_open_loss(const OpenLoss& loss) {
  std::string names;
  for (const auto& name : loss.files.names) names += (names.empty() ? "" : ", ") + name;
  const auto more = loss.files.files - loss.files.names.size();
  if (more != 0) names += fmt::format(" and {} more", more);
  return fmt::format("{} is open, and the content of {} is stored nowhere: {}", loss.name,
                     loss.files.files == 1 ? std::string("a file of it")
                                           : fmt::format("{} files of it", loss.files.files),
                     names);
}

}  // namespace varve::maintain
