// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/id_runs.h"
#include "maintain/repair_scope.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

/// Writes damaged files of the pool's aliases again, and removes wrong aliases. For one repair.
class AliasRepair {
 public:
  /// Lifetime: `scope` outlives the object.
  explicit AliasRepair(const RepairScope& scope) : scope_(scope) {}

  [[nodiscard]] Result<void> scan(const meta::Env& catalog);
  /// Executes the steps planned by scan().
  [[nodiscard]] Result<void> execute(const meta::Env& catalog) const;

 private:
  const RepairScope& scope_;
  base::IdRuns wrong_;      // The targets have another content.
  bool is_needed_ = false;  // The files of aliases differ from the catalog.
};

}  // namespace varve::maintain
