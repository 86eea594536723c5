// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "maintain/history_check.h"
#include "maintain/repair_scope.h"
#include "meta/lmdb.h"
#include "store/repository_paths.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Compares the catalog with the files of another history or of a later state, and keeps these
/// files under new names. For one repair.
class HistoryRepair {
 public:
  /// Lifetime: `scope` outlives the object.
  explicit HistoryRepair(const RepairScope& scope) : scope_(scope) {}

  /// Compares a readable catalog with labels and manifests.
  /// Errors: kInvalid if labels or manifests are of another history, and the caller did not choose.
  [[nodiscard]] Result<void> compare(const meta::Env& catalog);
  /// Returns why a catalog must make way for the rest of the repository, after compare(); nullopt
  /// if the catalog stays.
  [[nodiscard]] Result<std::optional<std::string>> fault_of(const meta::Env& catalog);
  /// Returns whether the catalog stays although labels or manifests are of a later state, because
  /// the folder lacks most of the data of the later state. `rebuilt`: the new catalog. `with_data`:
  /// as in judge_later_state().
  /// Errors: kInvalid if the folder lacks a part of the later state, and the caller did not choose.
  [[nodiscard]] Result<bool> lacks_later_state(const meta::Env& rebuilt, bool with_data) const;

  /// Renames and keeps labels and manifests of another history than the catalog.
  [[nodiscard]] Result<void> put_mixed_away(RepairReport& report) const;
  /// Keeps the files of a later state under new names. Reports the names and locks that the later
  /// state has for versions of the catalog. `rebuilt`: the new catalog.
  [[nodiscard]] Result<void> put_later_state_away(const meta::Env& rebuilt,
                                                  RepairReport& report) const;
  /// Reports the versions of the old catalog that the new catalog lacks or has under new names.
  [[nodiscard]] Result<void> name_missing(const meta::Env& fresh, RepairReport& report) const;

  /// Returns the files of another history than the catalog.
  [[nodiscard]] const std::vector<MixedFile>& mixed() const { return mixed_; }
  [[nodiscard]] bool is_mixed(const std::string& path) const;
  /// Returns the versions of the compared catalog, as far as readable.
  [[nodiscard]] const std::vector<ListedVersion>& listed() const { return listed_; }

 private:
  /// Renames and keeps labels and manifests. `of`: the state to which the files belong.
  [[nodiscard]] Result<void> put_files_away(const std::vector<MixedFile>& files, const char* of,
                                            RepairReport& report) const;

  const RepairScope& scope_;
  std::vector<MixedFile> mixed_;
  std::vector<MixedFile> later_;  // Files of a later state, if `mixed_` is empty.
  std::vector<ListedVersion> listed_;
  bool catalog_is_older_ = false;  // Older than labels or manifests of the same history.
};

/// Returns texts that name the files kept by earlier repairs under new names.
[[nodiscard]] Result<std::vector<std::string>> find_left_out(io::FileSystem& files,
                                                             const store::RepositoryPaths& paths);

}  // namespace varve::maintain
