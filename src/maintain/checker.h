// SPDX-License-Identifier: Apache-2.0
// Checking that everything stored can be given back.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "io/file_system.h"
#include "maintain/parallel_verifier.h"
#include "maintain/tree_checker.h"
#include "meta/lmdb.h"
#include "store/segment_files.h"
#include "varve/maintenance.h"

namespace varve::maintain {

/// One use; its threads are its own. Reads beside any writer: it looks at what the catalog held
/// when it came to a series.
class Checker {
 public:
  Checker(const meta::Env& catalog, io::FileSystem& files, std::string repository_path,
          const CheckOptions& options, std::function<void(const CheckProgress&)> progress);

  /// An error only where the catalog itself cannot be read at all.
  [[nodiscard]] Result<CheckReport> run();

 private:
  [[nodiscard]] Result<void> check_series(const catalog::SeriesRecord& series);
  [[nodiscard]] Result<bool> check_containers(const catalog::SeriesRecord& series);
  [[nodiscard]] VerifyJob job_of(SeriesId series, const store::ContainerRecord& record) const;
  void check_container(const store::SegmentReader& reader, const store::ContainerRecord& record,
                       const ContainerVerdict& verdict,
                       const std::multimap<std::uint32_t, catalog::LocationRecord>& runs_of);
  void check_manifests(const catalog::SeriesRecord& series,
                       const std::vector<catalog::VersionRecord>& versions);
  [[nodiscard]] Result<void> check_chunks(const catalog::SeriesRecord& series,
                                          const std::vector<catalog::VersionRecord>& versions);
  /// Reports the name of a series or version if it had to be replaced.
  void check_name(const std::string& of, const std::string& fault, const std::string& replacement);
  /// Notes what is in the repository's folder without being a part of the repository.
  void note_strays();
  void check_index(const catalog::SeriesRecord& series,
                   const std::vector<catalog::VersionRecord>& versions);
  /// What of the series parity covers; where data is read, parity is, too.
  [[nodiscard]] Result<void> check_parity(SeriesId series);
  /// Waits as long as reading so many bytes may take. False if the check is to stop.
  [[nodiscard]] bool keep_pace(std::uint64_t bytes) const;
  void damage(std::string where, std::string what, std::vector<base::IdRun> ids);
  [[nodiscard]] std::string series_directory(SeriesId series) const;

  const meta::Env& catalog_;
  io::FileSystem& files_;
  const std::string path_;
  const CheckOptions options_;
  const std::function<void(const CheckProgress&)> progress_;
  const std::uint64_t choice_;  // Of the containers whose data is read, where not all are.
  CheckReport report_;
  CheckProgress done_;

  // Of the series being checked.
  std::vector<DamagedChunks> damaged_;
  std::set<std::uint32_t> checked_;   // Containers.
  std::vector<base::IdRun> present_;  // Chunks that containers really hold where they should.
};

}  // namespace varve::maintain
