// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "io/watched_file_system.h"
#include "maintain/known_damage.h"
#include "varve/check.h"

namespace varve::maintain {

/// The report of a check, and the chunks found lost. Not thread-safe.
class CheckFindings {
 public:
  /// `files` learns of each error reported as damage: an error for lack of resources leaves the
  /// check without a verdict. Lifetime: `files` outlives the object.
  explicit CheckFindings(io::WatchedFileSystem& files) : files_(files) {}

  /// Reports an error as damage. `advice` follows the error's message.
  void damage(std::string where, const Error& error, const std::string& advice = "");
  void damage(std::string where, std::string what, std::vector<std::string> affected = {});
  void note(std::string where, std::string what);
  /// Adds chunks of a series or of the pool to lost_chunks().
  void add_lost(SeriesId owner, const base::IdRuns& chunks);
  [[nodiscard]] LostChunks lost_chunks() const;

  [[nodiscard]] CheckReport& report() { return report_; }

 private:
  io::WatchedFileSystem& files_;
  CheckReport report_;
  std::map<StoreId, std::vector<base::IdRun>> lost_;
};

}  // namespace varve::maintain
