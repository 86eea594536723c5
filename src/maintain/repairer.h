// SPDX-License-Identifier: Apache-2.0
// Finds and repairs damage to a repository's superblock, catalog and data.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/series_catalog.h"
#include "format/data_codecs.h"
#include "format/superblock.h"
#include "io/watched_file_system.h"
#include "maintain/data_repairer.h"
#include "maintain/history_check.h"
#include "maintain/manifest_file.h"
#include "maintain/parity_repairer.h"
#include "maintain/repair_helpers.h"
#include "meta/lmdb.h"
#include "store/folder_store.h"
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
  [[nodiscard]] std::uint64_t lost_chunks() const override { return lost_.chunks; }
  [[nodiscard]] std::uint64_t unrecognizable_chunks() const override {
    return lost_.unrecognizable;
  }
  [[nodiscard]] const std::vector<std::string>& left_out() const override { return left_out_; }
  [[nodiscard]] const std::vector<std::string>& lost_parts() const override { return lost_parts_; }
  [[nodiscard]] Result<RepairReport> execute(const Progress& progress) override;

 private:
  Repairer(const std::string& path, const RepairOptions& options,
           std::unique_ptr<io::WatchedFileSystem> files, RepairHelpers helpers);
  [[nodiscard]] Result<void> scan(bool scan_only, const Progress& progress);
  [[nodiscard]] Result<void> lock();
  /// Removes the note of a clean close: the next opening completes whatever the repair removes or
  /// the user has damaged.
  [[nodiscard]] Result<void> remove_settled();
  /// Refuses a repository older than the local machine remembers.
  [[nodiscard]] Result<void> compare_sequence(const CompareSequence& compare);
  /// Returns the sequence number of the catalog, or of the labels if the catalog must be rebuilt.
  [[nodiscard]] Result<std::uint64_t> present_sequence();
  [[nodiscard]] Result<void> scan_superblock();
  /// Refuses to build a new catalog under the superblock of another repository.
  [[nodiscard]] Result<void> check_superblock();
  void use(const format::Superblock& superblock, std::shared_ptr<const crypto::KeyRing> keys);
  /// Uses the file `varve.keys` instead of a bad `varve.repo`, if the repository is encrypted.
  /// Returns false without a file `varve.keys`.
  [[nodiscard]] Result<bool> use_superblock_copy(const std::string& damage);
  /// Returns true if the copy has later key slots of the same repository. Without keys, returns
  /// true if the copy claims later key slots.
  [[nodiscard]] bool has_newer_copy(const format::Superblock& superblock,
                                    const crypto::KeyRing* keys) const;
  /// Finds key slots older than the catalog.
  [[nodiscard]] Result<void> scan_key_counter();
  [[nodiscard]] Result<void> scan_catalog();
  /// Returns the reason why the catalog is unusable; nullopt for a usable catalog.
  [[nodiscard]] Result<std::optional<std::string>> fault_of_catalog();
  /// The faults of a readable catalog, with the affected files.
  struct CatalogFaults {
    std::vector<std::string> faults;      ///< Faults that a rebuild may repair.
    std::vector<std::string> lost_parts;  ///< Parts of versions that no manifest has either.
  };
  [[nodiscard]] Result<CatalogFaults> faults_in(const meta::Env& catalog);
  /// Compares a readable catalog with labels and manifests.
  /// Errors: kInvalid if labels or manifests are of another history, and the caller did not choose.
  [[nodiscard]] Result<void> compare_histories(const meta::Env& catalog);
  [[nodiscard]] bool is_mixed(const std::string& path) const;
  /// Finds the files left out by earlier repairs.
  [[nodiscard]] Result<void> scan_left_out();
  /// Renames and keeps labels and manifests that do not fit the catalog. `of`: the state to which
  /// the files belong.
  [[nodiscard]] Result<void> put_files_away(const std::vector<MixedFile>& files, const char* of,
                                            RepairReport& report);
  /// Returns whether the catalog stays although labels or manifests are of a later state, because
  /// the folder lacks most of the data of the later state. `rebuilt`: the new catalog.
  /// Errors: kInvalid if the folder lacks a part of the later state, and the caller did not choose.
  [[nodiscard]] Result<bool> lacks_later_state(const meta::Env& rebuilt, bool with_data) const;
  /// Builds the new catalog on trial, if further steps come first: a rebuild that must stop
  /// prevents all steps.
  [[nodiscard]] Result<void> try_rebuild(const Progress& progress);
  /// Reports the versions of the old catalog that the new catalog lacks or has under new names.
  [[nodiscard]] Result<void> name_missing(const meta::Env& fresh, RepairReport& report) const;
  /// Keeps the files of a later state under new names. Reports the names and locks that the later
  /// state has for versions of the catalog. `rebuilt`: the new catalog.
  [[nodiscard]] Result<void> put_later_state_away(const meta::Env& rebuilt, RepairReport& report);
  /// Keeps a copy of the labels of another history than the new catalog.
  [[nodiscard]] Result<void> copy_labels(SeriesId series, RepairReport& report);
  [[nodiscard]] Result<void> scan_manifests();
  /// Returns whether labels lack changes of the catalog.
  [[nodiscard]] Result<bool> lacks_changes(SeriesId series, const Result<Labels>& labels);
  [[nodiscard]] Result<void> scan_beside();
  /// Plans the removal of damaged index files, states of source files and notes of deletions.
  [[nodiscard]] Result<void> scan_derived(const FindDerivedFaults& find);
  [[nodiscard]] Result<void> remove_files(const std::vector<std::string>& paths);
  [[nodiscard]] Result<void> put_beside_away(RepairReport& report);
  [[nodiscard]] Result<void> scan_open_versions();
  [[nodiscard]] Result<void> drop_open_versions(RepairReport& report);
  [[nodiscard]] Result<void> open_catalog();
  [[nodiscard]] Result<void> scan_data(const Progress& progress);
  /// Plans the repair from parity before a catalog is rebuilt, so that the new catalog includes the
  /// repaired data.
  [[nodiscard]] Result<void> scan_aliases();
  [[nodiscard]] Result<void> write_aliases();
  [[nodiscard]] Result<void> scan_parity(const Progress& progress);
  [[nodiscard]] Result<void> restore_from_parity(const Progress& progress, RepairReport& report);
  [[nodiscard]] Result<void> scan_owner(SeriesId owner, CheckProgress& done,
                                        const Progress& progress);
  /// Searches the folder and the containers for the lost content.
  [[nodiscard]] Result<void> search_content(SeriesId owner, DataRepairer& repairer);
  /// Returns the store of a series or of the pool. Lifetime: the store lasts as long as the
  /// repairer.
  [[nodiscard]] store::SegmentStore& store_of(SeriesId owner);
  [[nodiscard]] Result<void> repair_data(RepairReport& report);
  [[nodiscard]] Result<void> repair(const Progress& progress, RepairReport& report);
  [[nodiscard]] meta::EnvOptions catalog_options(bool read_only) const;
  /// Makes an empty folder for a new catalog, and returns its path.
  [[nodiscard]] Result<std::string> make_fresh_folder();
  [[nodiscard]] Result<void> rebuild_catalog(const Progress& progress, RepairReport& report);
  [[nodiscard]] Result<std::string> put_old_catalog_away();
  /// Returns an unused path: `stem` followed by a number.
  [[nodiscard]] Result<std::string> free_name(const std::string& stem) const;
  [[nodiscard]] Result<std::string> rename_to_free_name(const std::string& path);
  void step(RepairStep::Kind kind, std::string where, std::string what);

  const std::string path_;
  const RepairOptions options_;
  std::unique_ptr<io::FileSystem> files_;  // Of an encrypted repository, over `watch_`.
  io::WatchedFileSystem& watch_;           // Owned by `files_`.
  const RepairHelpers helpers_;
  std::unique_ptr<io::FileSystem> outside_;  // File system of RepairOptions::from.
  std::unique_ptr<io::FileLock> lock_;
  std::vector<RepairStep> steps_;
  std::string superblock_;  // The text of varve.repo or of a copy, as labels have it.
  std::optional<format::Superblock> encrypted_;  // Set if the repository is encrypted.
  bool superblock_lost_ = false;
  bool catalog_lost_ = false;
  base::IdRuns wrong_aliases_;          // Their targets have another content.
  bool aliases_lost_ = false;           // The files of aliases differ from the catalog.
  std::vector<std::string> faults_;     // Faults of a readable catalog.
  std::vector<std::string> manifests_;  // Damaged manifests and labels to remove.
  std::vector<std::string> derived_;    // Damaged derived files to remove.
  std::vector<SeriesId> beside_;        // Series whose files beside versions are damaged.
  std::vector<catalog::VersionRecord> lost_versions_;  // Open versions to drop.
  RepositoryParameters parameters_;
  std::optional<format::DataCodecs> codecs_;  // Set with `parameters_`.
  std::optional<meta::Env> catalog_;          // Set if the catalog is sound.
  // By owner. Used by the repairers.
  std::map<SeriesId, std::unique_ptr<store::SegmentStore>> stores_;
  std::vector<std::pair<SeriesId, std::unique_ptr<DataRepairer>>>
      repairers_;  // The repairers use `catalog_`.
  std::vector<std::unique_ptr<ParityRepairer>> parity_repairers_;
  struct LostCount {
    std::uint64_t chunks = 0;
    std::uint64_t unrecognizable = 0;  // Of `chunks`.
  };
  LostCount lost_;
  std::vector<MixedFile> mixed_;
  std::vector<MixedFile> later_;       // Files of a later state, if `mixed_` is empty.
  std::vector<ListedVersion> listed_;  // Versions of a readable catalog.
  std::vector<std::string> left_out_;
  std::vector<std::string> lost_parts_;
  bool catalog_is_older_ = false;  // Older than labels or manifests of the same history.
};

}  // namespace varve::maintain
