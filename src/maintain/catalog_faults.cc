// SPDX-License-Identifier: Apache-2.0
#include "maintain/catalog_faults.h"

#include <algorithm>

#include "base/system_error.h"
#include "maintain/checker.h"
#include "maintain/lost_objects.h"

namespace varve::maintain {

Result<CatalogFaults> find_catalog_faults(const RepairScope& scope, const meta::Env& catalog) {
  CheckOptions how;
  how.read_data = false;
  CheckHelpers helpers;  // An index is not the catalog.
  helpers.open_store = scope.helpers.open_store;
  Checker checker(scope.codecs, catalog, scope.files, scope.path(), how, {}, helpers);
  VARVE_TRY_ASSIGN(const auto report, checker.run());
  VARVE_TRY_ASSIGN(const auto lost,
                   find_lost_objects(scope.files, scope.codecs.frames(), scope.path(), catalog,
                                     checker.broken_objects()));
  CatalogFaults found;
  for (std::size_t i = 0; i < report.damages.size(); ++i) {
    const auto& damage = report.damages[i];
    if (damage.where != scope.catalog_path()) continue;
    if (std::ranges::find(lost, i, &BrokenObject::report_index) != lost.end()) {
      found.lost_parts.push_back(describe_lost_object(damage));
      continue;
    }
    found.faults.push_back(damage.what);
    for (const auto& name : damage.affected) found.faults.back() += "; " + name;
  }
  return found;
}

Result<std::optional<std::string>> fault_from(const Error& error) {
  if (!base::is_damage(error)) return error;
  return std::optional(error.message());
}

}  // namespace varve::maintain
