// SPDX-License-Identifier: Apache-2.0
// Compares the folder with the newest head.
#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "remote/replicator.h"

namespace varve::remote {

Result<std::vector<std::string>> Replicator::unreplicated() const {
  const auto* const table = meta::catalog::kTables[meta::catalog::kVersions];
  std::vector<std::string> names;
  VARVE_TRY_ASSIGN(const auto here, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto there, meta::ReadTxn::begin(copy_));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(here));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(here, series.id));
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      const auto key = meta::version_key(series.id, version.number);
      VARVE_TRY_ASSIGN(const auto is, meta::find_stored(here, table, key));
      VARVE_TRY_ASSIGN(const auto known, meta::find_stored(there, table, key));
      if (is != known) names.push_back(series.name + "/" + version.name);
    }
  }
  return names;
}

// The head has the changed files as they are now. The upload has noted any remaining damage.
Result<void> Replicator::forget_changes(const std::set<std::string>& changed) {
  if (parts_.notes == nullptr) return {};
  return parts_.notes->remove(LocalNote::kChanged, changed);
}

}  // namespace varve::remote
