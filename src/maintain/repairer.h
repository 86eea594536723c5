// SPDX-License-Identifier: Apache-2.0
// Finds out what a repository's superblock and catalog lack, and brings them back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/series_catalog.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "maintain/data_mender.h"
#include "maintain/parity_mender.h"
#include "meta/lmdb.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// One use, one thread.
class Repairer final : public Repair {
 public:
  using Progress = std::function<void(const CheckProgress&)>;

  [[nodiscard]] static Result<std::unique_ptr<Repair>> plan(const std::string& path,
                                                            const RepairOptions& options,
                                                            bool look_only,
                                                            const Progress& progress);

  [[nodiscard]] const std::vector<RepairStep>& steps() const override { return steps_; }
  [[nodiscard]] Result<RepairReport> execute(const Progress& progress) override;

 private:
  Repairer(const std::string& path, const RepairOptions& options,
           std::unique_ptr<io::FileSystem> files);
  [[nodiscard]] Result<void> lock();
  [[nodiscard]] Result<void> look_at_superblock();
  /// What LMDB must not see in the overlay of an open version, if it has one.
  [[nodiscard]] std::optional<std::string> damage_of_overlay(
      const catalog::VersionRecord& record) const;
  [[nodiscard]] Result<void> look_at_catalog();
  /// Why the catalog cannot be used as it is; nullopt if it can.
  [[nodiscard]] Result<std::optional<std::string>> fault_of_catalog();
  /// What is wrong with a catalog that can be read, with the files that this touches.
  [[nodiscard]] Result<std::vector<std::string>> faults_in(const meta::Env& catalog);
  [[nodiscard]] Result<void> look_at_manifests();
  [[nodiscard]] Result<void> look_at_open_versions();
  [[nodiscard]] Result<void> drop_open_versions(RepairReport& report);
  [[nodiscard]] Result<void> open_catalog();
  [[nodiscard]] Result<void> look_at_data(const Progress& progress);
  /// Where the catalog is lost: what parity brings back, so that the new one has it.
  [[nodiscard]] Result<void> look_at_parity(const Progress& progress);
  [[nodiscard]] Result<void> restore_from_parity(const Progress& progress, RepairReport& report);
  [[nodiscard]] Result<void> look_at_series(SeriesId series, CheckProgress& done,
                                            const Progress& progress);
  [[nodiscard]] Result<void> mend_data(RepairReport& report);
  [[nodiscard]] Result<void> rebuild_catalog(const Progress& progress, RepairReport& report);
  [[nodiscard]] Result<std::string> put_old_catalog_away();
  void step(RepairStep::Kind kind, std::string where, std::string what);

  const std::string path_;
  const RepairOptions options_;
  std::unique_ptr<io::FileSystem> files_;
  std::unique_ptr<io::FileSystem> outside_;  // Of the folder to copy from.
  std::unique_ptr<io::FileLock> lock_;
  std::vector<RepairStep> steps_;
  std::string superblock_;  // The text, from wherever it was found.
  bool superblock_lost_ = false;
  bool catalog_lost_ = false;
  std::vector<std::string> faults_;                    // Of a catalog that can be read.
  std::vector<std::string> manifests_;                 // Damaged ones, to be removed.
  std::vector<catalog::VersionRecord> lost_versions_;  // Open ones.
  RepositoryParameters parameters_;
  std::optional<meta::Env> catalog_;                                       // Where it is sound.
  std::vector<std::pair<SeriesId, std::unique_ptr<DataMender>>> menders_;  // Use the catalog.
  std::vector<std::unique_ptr<ParityMender>> parity_menders_;
};

}  // namespace varve::maintain
