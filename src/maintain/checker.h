// SPDX-License-Identifier: Apache-2.0
// Checks whether all stored data can be restored.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "catalog/series_catalog.h"
#include "format/data_codecs.h"
#include "io/watched_file_system.h"
#include "maintain/check_findings.h"
#include "maintain/check_helpers.h"
#include "maintain/check_scope.h"
#include "maintain/known_damage.h"
#include "maintain/owner_stores.h"
#include "maintain/pool_checker.h"
#include "maintain/store_checker.h"
#include "maintain/tree_checker.h"
#include "maintain/verify_choice.h"
#include "meta/lmdb.h"
#include "varve/check.h"

namespace varve::maintain {

/// Checks a repository. For one use; owns its threads. A writer may be active: the check uses the
/// state of the catalog at the time when the check reaches the pool or a series. The pool comes
/// first, because the versions of all series refer to the pool.
class Checker {
 public:
  /// Lifetime: `codecs`, `catalog` and `files` must outlive the checker.
  Checker(const format::DataCodecs& codecs, const meta::Env& catalog, io::FileSystem& files,
          std::string repository_path, const CheckOptions& options,
          std::function<void(const CheckProgress&)> progress, CheckHelpers helpers);

  /// Runs the check. Errors: errors of the catalog, if the catalog cannot be read at all;
  /// kUnavailable; errors of a process without enough descriptors or memory, because the check then
  /// has no verdict.
  [[nodiscard]] Result<CheckReport> run();
  /// Returns the chunks found damaged by run() and by a second read.
  [[nodiscard]] LostChunks lost_chunks() const { return findings_.lost_chunks(); }
  /// Returns the pages and recipes that run() could not read, in no order.
  [[nodiscard]] const std::vector<BrokenObject>& broken_objects() const { return broken_; }

 private:
  [[nodiscard]] Result<void> check_all();
  [[nodiscard]] Result<void> check_series(const catalog::SeriesRecord& series);
  /// Reports an open version whose content is lost, as `varve repair` would.
  [[nodiscard]] Result<void> check_open_version(const catalog::SeriesRecord& series,
                                                const catalog::VersionRecord& version);
  /// Reports open versions that refer to chunks unknown to the catalog.
  [[nodiscard]] Result<void> check_open_losses();
  /// Checks that all chunks referred to by the versions are stored.
  [[nodiscard]] Result<void> check_chunks(const std::vector<catalog::VersionRecord>& versions,
                                          StoreChecker& store);
  /// Reports a damaged name of a series or version that had to be replaced.
  void check_name(const std::string& of, const std::string& fault, const std::string& replacement);
  /// Adds notes on files in the repository's folder that do not belong to the repository.
  void note_strays();
  void check_derived();
  [[nodiscard]] Result<void> note_fault(const Result<void>& checked);
  /// Counts a checked container.
  void pass(const CheckPosition& reached, std::uint64_t bytes);

  io::WatchedFileSystem files_;
  const CheckOptions options_;
  const std::function<void(const CheckProgress&)> progress_;
  const CheckHelpers helpers_;
  OwnerStores stores_;
  const CheckScope scope_;
  CheckFindings findings_;
  const VerifyChoice choice_;
  PoolChecker pool_;
  std::vector<BrokenObject> broken_;
  CheckProgress done_;
};

}  // namespace varve::maintain
