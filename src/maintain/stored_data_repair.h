// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "io/file_system.h"
#include "maintain/data_repairer.h"
#include "maintain/parity_repairer.h"
#include "maintain/repair_scope.h"
#include "meta/lmdb.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Plans and executes the repair of the data of all series and of the pool. For one repair.
class StoredDataRepair {
 public:
  using Progress = std::function<void(const CheckProgress&)>;

  /// Lifetime: `scope` outlives the object.
  explicit StoredDataRepair(const RepairScope& scope);

  /// Plans the repair of all data. Lifetime: `catalog` outlives the object.
  [[nodiscard]] Result<void> scan(const meta::Env& catalog, const Progress& progress);
  /// Plans the repair from parity before a catalog is rebuilt, so that the new catalog includes the
  /// repaired data. The steps come before all other steps.
  [[nodiscard]] Result<void> scan_without_catalog(const Progress& progress);
  [[nodiscard]] Result<void> restore_from_parity(const Progress& progress, RepairReport& report);
  /// Repairs the rest of the data, and writes the labels of the changed series.
  [[nodiscard]] Result<void> execute(const meta::Env& catalog, RepairReport& report);

  [[nodiscard]] bool restores_from_parity() const { return !parity_repairers_.empty(); }
  [[nodiscard]] std::uint64_t lost_chunks() const { return lost_chunks_; }
  [[nodiscard]] std::uint64_t unrecognizable_chunks() const { return unrecognizable_chunks_; }

 private:
  [[nodiscard]] Result<void> scan_owner(const meta::Env& catalog, SeriesId owner,
                                        CheckProgress& done, const Progress& progress);
  /// Searches the folder and the containers for the lost content.
  [[nodiscard]] Result<void> search_content(const meta::Env& catalog, SeriesId owner,
                                            DataRepairer& repairer);

  const RepairScope& scope_;
  std::unique_ptr<io::FileSystem> outside_;  // File system of RepairOptions::from.
  std::vector<std::pair<SeriesId, std::unique_ptr<DataRepairer>>> repairers_;
  std::vector<std::unique_ptr<ParityRepairer>> parity_repairers_;
  std::uint64_t lost_chunks_ = 0;
  std::uint64_t unrecognizable_chunks_ = 0;  // Of the lost chunks.
};

}  // namespace varve::maintain
