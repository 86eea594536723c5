// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/id_runs.h"
#include "maintain/check_record.h"
#include "maintain/known_damage.h"
#include "repo/repository_folder.h"
#include "repo/series_table.h"
#include "varve/check.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::repo {

class SeriesResources;

/// Quarantines chunks found damaged by checks, and names the files with damaged chunks. Functions
/// named as functions of Repository have the same errors. Thread-safe. Lock order: mutex_ is
/// outermost.
class QuarantineKeeper {
 public:
  /// Lifetime: the arguments outlive the object.
  QuarantineKeeper(RepositoryFolder& folder, SeriesResources& resources, SeriesTable& series);

  /// As Repository::settle_quarantine().
  [[nodiscard]] Result<std::uint64_t> settle();
  /// As settle(), if the record of checks names chunks. Logs errors.
  void settle_recorded();
  /// Adds the chunks that reads of this process found damaged to the record of checks. A writer
  /// then settles the recorded chunks, also those recorded by other processes. Logs errors. Call
  /// before a version begins or is sealed, and at the close.
  void keep_found();
  /// Quarantines chunks found damaged by a check, or leaves the chunks to the next writer. With
  /// `is_recorded`, records the result of the check.
  void keep_damage(const maintain::LostChunks& lost, maintain::CheckEnd end, bool is_recorded,
                   CheckReport& report);

  [[nodiscard]] Result<LostFiles> lost_files(SeriesId series, VersionNumber number);
  [[nodiscard]] Result<std::vector<VersionNumber>> versions_with_losses(SeriesId series) const;

 private:
  /// Changes the quarantine, as maintain::change_quarantine(), in the catalog and in open series.
  /// Returns the number of chunks added or released.
  [[nodiscard]] Result<std::uint64_t> change(const maintain::LostChunks& lost,
                                             const maintain::LostChunks& sound);
  /// Returns the chunks, with aliases, that are unreadable for the versions of a series.
  [[nodiscard]] Result<base::IdRuns> lost_chunks(SeriesId series) const;
  /// Adds the chunks that reads found damaged to the record of checks.
  void record_found();

  RepositoryFolder& folder_;
  SeriesResources& resources_;
  SeriesTable& series_;
  std::mutex mutex_;         // Held while chunks in the record of checks are read again.
  std::mutex record_mutex_;  // Held while found damage is recorded. Guards has_warned_.
  bool has_warned_ = false;  // That found damage cannot be recorded.
};

}  // namespace varve::repo
