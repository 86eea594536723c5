// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "maintain/repair_scope.h"
#include "meta/lmdb.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Drops open versions whose staging is missing or damaged. For one repair.
class OpenVersionRepair {
 public:
  /// Lifetime: `scope` outlives the object.
  explicit OpenVersionRepair(const RepairScope& scope) : scope_(scope) {}

  /// Plans the steps. Adds the lost content of the remaining open versions to `lost_parts`.
  [[nodiscard]] Result<void> scan(const meta::Env& catalog, std::vector<std::string>& lost_parts);
  /// Drops the versions found by scan().
  [[nodiscard]] Result<void> execute(const meta::Env& catalog, RepairReport& report) const;

 private:
  const RepairScope& scope_;
  std::vector<catalog::VersionRecord> dropped_;
};

}  // namespace varve::maintain
