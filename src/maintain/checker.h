// SPDX-License-Identifier: Apache-2.0
// Checks that everything stored can be restored.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/parallel_verifier.h"
#include "maintain/tree_checker.h"
#include "meta/lmdb.h"
#include "store/segment_files.h"
#include "varve/check.h"

namespace varve::maintain {

/// Verifies the index of a series' newest sealed version, which is derived data. If empty, the
/// check leaves indexes out. Errors: kNotFound if there is none; kCorrupt.
using VerifyIndex = std::function<Result<void>(SeriesId series, VersionNumber newest)>;

/// Checks a repository. For one use; owns its threads. Works beside a writer: it checks the state
/// of the catalog at the time it reaches a series.
class Checker {
 public:
  /// Lifetime: `codecs`, `catalog` and `files` must outlive the checker.
  Checker(const format::DataCodecs& codecs, const meta::Env& catalog, io::FileSystem& files,
          std::string repository_path, const CheckOptions& options,
          std::function<void(const CheckProgress&)> progress, VerifyIndex verify_index);

  /// Runs the check. Fails only if the catalog cannot be read at all.
  [[nodiscard]] Result<CheckReport> run();

 private:
  [[nodiscard]] Result<void> check_series(const catalog::SeriesRecord& series);
  [[nodiscard]] Result<bool> check_containers(const catalog::SeriesRecord& series);
  [[nodiscard]] VerifyJob job_of(SeriesId series, const format::ContainerRecord& record) const;
  void check_container(const store::SegmentReader& reader, const format::ContainerRecord& record,
                       const ContainerVerdict& verdict,
                       const std::multimap<ContainerNumber, catalog::LocationRecord>& runs_of);
  void check_manifests(const catalog::SeriesRecord& series,
                       const std::vector<catalog::VersionRecord>& versions);
  /// Reports an open version whose content is lost, as `varve repair` would.
  [[nodiscard]] Result<void> check_open_version(const catalog::SeriesRecord& series,
                                                const catalog::VersionRecord& version);
  [[nodiscard]] Result<void> check_newest_record(
      const catalog::SeriesRecord& series, const std::vector<catalog::VersionRecord>& versions);
  [[nodiscard]] Result<void> check_chunks(const catalog::SeriesRecord& series,
                                          const std::vector<catalog::VersionRecord>& versions);
  /// Reports a damaged name of a series or version that had to be replaced.
  void check_name(const std::string& of, const std::string& fault, const std::string& replacement);
  /// Adds notes on things in the repository's folder that do not belong to the repository.
  void note_strays();
  void check_index(const catalog::SeriesRecord& series,
                   const std::vector<catalog::VersionRecord>& versions);
  /// Counts the files that parity covers. With read_data, checks the parity data too.
  [[nodiscard]] Result<void> check_parity(SeriesId series);
  /// Waits as long as the rate limit requires for these bytes. Returns false if the check must
  /// stop.
  [[nodiscard]] bool keep_pace(std::uint64_t bytes) const;
  void damage(std::string where, std::string what, std::vector<base::IdRun> ids);
  [[nodiscard]] std::string series_directory(SeriesId series) const;

  const format::DataCodecs& codecs_;
  const meta::Env& catalog_;
  io::FileSystem& files_;
  const std::string path_;
  const CheckOptions options_;
  const std::function<void(const CheckProgress&)> progress_;
  const VerifyIndex verify_index_;
  // Random seed for the choice of containers with CheckOptions::percent.
  const std::uint64_t choice_;
  CheckReport report_;
  CheckProgress done_;

  // State of the present series.
  std::vector<DamagedChunks> damaged_;
  std::set<ContainerNumber> checked_;  // Numbers of the checked containers.
  std::vector<base::IdRun> present_;   // Chunks found in containers at their recorded places.
};

}  // namespace varve::maintain
