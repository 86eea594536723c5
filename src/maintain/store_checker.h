// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/location_table.h"
#include "maintain/check_findings.h"
#include "maintain/check_scope.h"
#include "maintain/container_verifier.h"
#include "maintain/tree_checker.h"
#include "maintain/verify_choice.h"
#include "store/segment_files.h"
#include "varve/check.h"
#include "varve/result.h"

namespace varve::maintain {

/// Checks the stored data of a series or of the pool, and collects the damaged and the present
/// chunks. For one check; owns the check's threads.
class StoreChecker {
 public:
  /// Called after each container.
  using OnContainer = std::function<void(const CheckPosition& reached, std::uint64_t bytes_read)>;

  /// Lifetime: the arguments outlive the checker.
  StoreChecker(const CheckScope& scope, const VerifyChoice& choice, CheckFindings& findings,
               SeriesId owner, OnContainer on_container);

  /// Compares the records of files and containers with the files.
  [[nodiscard]] Result<void> check_records();
  /// Checks all containers without a check so far. CheckReport::finished is false after a stop.
  [[nodiscard]] Result<void> check_data();
  /// Counts the files that parity covers. With read_data, checks the parity data too.
  [[nodiscard]] Result<void> check_parity();

  /// Reports damage that makes chunks of the store unreadable.
  void damage(std::string where, std::string what, std::vector<base::IdRun> ids);
  /// Attributes unreadable chunks to the last damage in the report.
  void mark_damaged(base::IdRuns ids);
  /// Counts each alias of the pool as present or as damaged, as the alias' target is.
  [[nodiscard]] Result<void> add_aliases();

  /// Returns the unreadable chunks, by the damage in the report.
  [[nodiscard]] const std::vector<DamagedChunks>& damaged() const { return damaged_; }
  /// Returns the chunks found in containers at the recorded places, after check_data().
  [[nodiscard]] const base::IdRuns& present() const { return present_; }

 private:
  using RunsOf = std::multimap<ContainerNumber, catalog::LocationRecord>;

  /// Checks the containers without a check so far, in disk order. Returns true if some containers
  /// were replaced during the check.
  [[nodiscard]] Result<bool> check_containers();
  void check_container(const store::SegmentReader& reader, const format::ContainerRecord& record,
                       const ContainerVerdict& verdict, const RunsOf& runs_of);
  /// Reads the container again if the verdict shows damaged chunks. Returns the lost chunks. If the
  /// second read found no damage, adds a note to the damages from `first` on.
  [[nodiscard]] Result<base::IdRuns> confirm(const format::ContainerRecord& record,
                                             const ContainerVerdict& verdict, const RunsOf& runs_of,
                                             std::size_t first);
  [[nodiscard]] store::SegmentStore& store() const { return scope_.stores.of(owner_); }
  /// Waits as long as the rate limit requires for `bytes`. Returns false if the check must stop.
  [[nodiscard]] bool keep_pace(std::uint64_t bytes) const;

  const CheckScope& scope_;
  const VerifyChoice& choice_;
  CheckFindings& findings_;
  const SeriesId owner_;
  const OnContainer on_container_;
  std::vector<DamagedChunks> damaged_;
  std::set<ContainerNumber> checked_;
  std::vector<base::IdRun> found_;  // Chunks found in the containers checked so far.
  base::IdRuns present_;            // `found_`, after the check of all containers.
};

}  // namespace varve::maintain
