// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/history_repair.h"
#include "maintain/repair_scope.h"
#include "meta/lmdb.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Builds a new catalog from manifests and containers, and replaces the old catalog. For one
/// repair.
class CatalogReplacer {
 public:
  using Progress = std::function<void(const CheckProgress&)>;

  /// `faults`: the faults of a readable old catalog. Lifetime: the arguments outlive the object.
  CatalogReplacer(const RepairScope& scope, const HistoryRepair& histories,
                  const std::vector<std::string>& faults)
      : scope_(scope), histories_(histories), faults_(faults) {}

  /// Builds the new catalog on trial: a rebuild that must stop prevents the repair's earlier steps.
  /// `with_data`: false if an earlier step may restore data. Errors: as replace().
  [[nodiscard]] Result<void> try_rebuild(bool with_data, const Progress& progress) const;
  /// Replaces the catalog, unless the new catalog has the same faults or lacks a later state.
  /// Errors: kInvalid if the folder has files of two histories, and the caller did not choose.
  [[nodiscard]] Result<void> replace(const Progress& progress, RepairReport& report) const;

 private:
  /// Makes an empty folder for a new catalog, and returns the path.
  [[nodiscard]] Result<std::string> make_fresh_folder() const;
  [[nodiscard]] Result<std::string> put_old_catalog_away() const;
  /// Keeps a copy of the labels of another history than the new catalog.
  [[nodiscard]] Result<void> copy_labels(SeriesId series, RepairReport& report) const;

  const RepairScope& scope_;
  const HistoryRepair& histories_;
  const std::vector<std::string>& faults_;
};

}  // namespace varve::maintain
