// SPDX-License-Identifier: Apache-2.0
// Finds and repairs damage to a repository's superblock, catalog and data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/data_codecs.h"
#include "io/watched_file_system.h"
#include "maintain/alias_repair.h"
#include "maintain/history_repair.h"
#include "maintain/open_version_repair.h"
#include "maintain/owner_stores.h"
#include "maintain/repair_helpers.h"
#include "maintain/repair_scope.h"
#include "maintain/series_file_repair.h"
#include "maintain/stored_data_repair.h"
#include "maintain/superblock_repair.h"
#include "meta/lmdb.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/result.h"

namespace varve::maintain {

/// Plans and executes one repair. For one use by one thread.
class Repairer final : public Repair {
 public:
  using Progress = std::function<void(const CheckProgress&)>;

  /// `files` shows the folder of the repository on the disk.
  /// Errors: also the errors of a process without enough descriptors or memory, because the process
  /// cannot distinguish damage from a failed read.
  [[nodiscard]] static Result<std::unique_ptr<Repair>> plan(
      const std::string& path, const RepairOptions& options, std::unique_ptr<io::FileSystem> files,
      bool scan_only, const Progress& progress, const RepairHelpers& helpers);

  [[nodiscard]] const std::vector<RepairStep>& steps() const override { return steps_; }
  [[nodiscard]] std::uint64_t lost_chunks() const override { return data_.lost_chunks(); }
  [[nodiscard]] std::uint64_t unrecognizable_chunks() const override {
    return data_.unrecognizable_chunks();
  }
  [[nodiscard]] const std::vector<std::string>& left_out() const override { return left_out_; }
  [[nodiscard]] const std::vector<std::string>& lost_parts() const override { return lost_parts_; }
  [[nodiscard]] Result<RepairReport> execute(const Progress& progress) override;

 private:
  /// `watch` is owned by `files`. `lock` is null in a scan.
  Repairer(const std::string& path, const RepairOptions& options,
           std::unique_ptr<io::FileSystem> files, io::WatchedFileSystem& watch,
           SuperblockRepair superblock, RepairHelpers helpers, std::unique_ptr<io::FileLock> lock);
  [[nodiscard]] Result<void> scan(const Progress& progress);
  /// Refuses a repository older than the local machine remembers.
  [[nodiscard]] Result<void> compare_sequence() const;
  /// Returns the sequence number of the catalog, or of the labels if the catalog must be rebuilt.
  [[nodiscard]] Result<std::uint64_t> present_sequence() const;
  [[nodiscard]] Result<void> scan_catalog();
  /// Returns the reason why the catalog is unusable; nullopt for a usable catalog.
  [[nodiscard]] Result<std::optional<std::string>> fault_of_catalog();
  [[nodiscard]] Result<void> open_catalog();
  [[nodiscard]] Result<void> repair(const Progress& progress, RepairReport& report);

  const RepairOptions options_;
  const RepairHelpers helpers_;
  const std::unique_ptr<io::FileSystem> files_;
  const std::unique_ptr<io::FileLock> lock_;
  SuperblockRepair superblock_;
  const format::DataCodecs codecs_;
  OwnerStores stores_;
  std::vector<RepairStep> steps_;
  const RepairScope scope_;
  std::optional<meta::Env> catalog_;  // Set if the catalog is sound.
  HistoryRepair histories_;
  StoredDataRepair data_;
  SeriesFileRepair series_files_;
  AliasRepair aliases_;
  OpenVersionRepair open_versions_;
  bool catalog_lost_ = false;
  std::vector<std::string> faults_;  // Faults of a readable catalog.
  std::vector<std::string> left_out_;
  std::vector<std::string> lost_parts_;
};

}  // namespace varve::maintain
