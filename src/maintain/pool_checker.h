// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/id_runs.h"
#include "catalog/series_catalog.h"
#include "maintain/check_findings.h"
#include "maintain/check_scope.h"
#include "maintain/store_checker.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

/// Checks the pool: the records of its users, its aliases and its data. For one check.
class PoolChecker {
 public:
  /// Lifetime: the arguments outlive the checker.
  PoolChecker(const CheckScope& scope, const VerifyChoice& choice, CheckFindings& findings,
              StoreChecker::OnContainer on_container);

  /// Checks the pool, if the repository has a pool.
  [[nodiscard]] Result<void> check();
  /// Reports chunks of the pool that are not stored, and a wrong list of the version's containers.
  /// `chunks`: all chunks of the version. Returns whether a writer has stored some of the chunks
  /// since the last check of the data.
  [[nodiscard]] Result<bool> check_chunks(const meta::Txn& txn,
                                          const catalog::VersionRecord& version,
                                          const base::IdRuns& chunks);
  /// Checks the containers stored since the last check of the data.
  [[nodiscard]] Result<void> check_data();

  /// Returns the unreadable chunks, by the damage in the report.
  [[nodiscard]] const std::vector<DamagedChunks>& damaged() const { return store_.damaged(); }

 private:
  /// Compares the numbers of users of the containers with the versions' lists.
  [[nodiscard]] Result<void> check_users(const meta::Txn& txn);
  [[nodiscard]] Result<void> check_rewrite_counts(const meta::Txn& txn);
  [[nodiscard]] Result<void> check_births(const meta::Txn& txn);
  /// Checks the aliases in the catalog and in the files of aliases.
  [[nodiscard]] Result<void> check_aliases();

  const CheckScope& scope_;
  CheckFindings& findings_;
  StoreChecker store_;
};

}  // namespace varve::maintain
