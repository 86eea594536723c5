// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/layout_records.h"
#include "layout/category_layout.h"
#include "layout/deletion.h"
#include "layout/window.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Plans the deletion of a version alone, for many versions one after the other. The cost of a plan
/// grows only with the freed chunks; plan_deletion() reads the records of all versions. Not
/// thread-safe.
/// Lifetime: the arguments of open() outlive the object and all plans.
class LoneDeletion {
 public:
  /// `versions`: all live versions, ascending.
  [[nodiscard]] static Result<LoneDeletion> open(CategoryLayout& layout, const meta::Txn& txn,
                                                 const std::vector<LiveVersion>& versions);

  /// Plans the deletion of `number`. `lone` has the chunks used by no other version. Does not set
  /// DeletionPlan::waiting.
  [[nodiscard]] Result<DeletionPlan> plan(VersionNumber number, base::IdRuns lone);

 private:
  LoneDeletion(CategoryLayout& layout, const meta::Txn& txn,
               const std::vector<LiveVersion>& versions)
      : layout_(layout), txn_(txn), versions_(versions) {}

  CategoryLayout& layout_;
  const meta::Txn& txn_;
  const std::vector<LiveVersion>& versions_;
  /// The volumes by newest live version not newer than the volume.
  std::map<VersionNumber, std::vector<catalog::SegmentRecord>> volumes_;
};

}  // namespace varve::layout
