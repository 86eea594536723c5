// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "maintain/history_repair.h"
#include "maintain/manifest_file.h"
#include "maintain/repair_scope.h"
#include "meta/lmdb.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Writes damaged labels again. Removes damaged files that the next opening or backup writes again:
/// manifests and derived files. Keeps damaged files of names beside versions under other names. For
/// one repair.
class SeriesFileRepair {
 public:
  /// Lifetime: `scope` outlives the object.
  explicit SeriesFileRepair(const RepairScope& scope) : scope_(scope) {}

  /// Plans to remove damaged manifests and to write damaged labels. Leaves out the files of another
  /// history.
  [[nodiscard]] Result<void> scan_manifests(const meta::Env& catalog,
                                            const HistoryRepair& histories);
  [[nodiscard]] Result<void> scan_beside();
  /// Plans the removal of damaged index files, states of source files and notes of deletions.
  [[nodiscard]] Result<void> scan_derived(const meta::Env& catalog);

  [[nodiscard]] Result<void> put_beside_away(RepairReport& report) const;
  [[nodiscard]] Result<void> remove_damaged(const meta::Env& catalog) const;
  /// Writes the planned labels in place of the present ones.
  [[nodiscard]] Result<void> replace_labels(const meta::Env& catalog) const;

 private:
  /// Returns whether labels lack changes of the catalog.
  [[nodiscard]] Result<bool> lacks_changes(const meta::Env& catalog, SeriesId series,
                                           const Result<Labels>& labels) const;
  [[nodiscard]] Result<void> remove_files(const std::vector<std::string>& paths) const;

  const RepairScope& scope_;
  std::vector<std::string> manifests_;  // Damaged manifests to remove.
  std::vector<SeriesId> labels_;        // Series whose labels are to be written.
  std::set<SeriesId> lacks_manifests_;  // Series of which manifests_ are.
  std::vector<std::string> derived_;    // Damaged derived files to remove.
  std::vector<SeriesId> beside_;        // Series whose files beside versions are damaged.
};

}  // namespace varve::maintain
