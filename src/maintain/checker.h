// SPDX-License-Identifier: Apache-2.0
// Checks whether all stored data can be restored.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "format/beside.h"
#include "format/data_codecs.h"
#include "io/watched_file_system.h"
#include "maintain/derived_faults.h"
#include "maintain/known_damage.h"
#include "maintain/open_losses.h"
#include "maintain/parallel_verifier.h"
#include "maintain/tree_checker.h"
#include "meta/lmdb.h"
#include "store/folder_store.h"
#include "store/segment_files.h"
#include "varve/check.h"

namespace varve::maintain {

/// Verifies the index of a series' newest sealed version, which is derived data. If empty, the
/// check leaves indexes out. Errors: kNotFound without an index; kCorrupt.
using VerifyIndex = std::function<Result<void>(SeriesId series, VersionNumber newest)>;

/// Reads all data of an open version in the staging folder, and returns the unreadable parts. If
/// empty, the check reads only the pages of overlays.
using ReadStaged =
    std::function<Result<std::vector<std::string>>(SeriesId series, VersionNumber number)>;

/// The parts of a check implemented in other rooms.
struct CheckHelpers {
  store::StoreOpener open_store{};  ///< Empty if all data is on the disk.
  /// False in an attached folder: the content of open versions is on the writing machine.
  bool has_open_versions = true;
  VerifyIndex verify_index{};
  ReadStaged read_staged{};
  FindUnstoredFiles find_unstored{};  ///< If empty, lost content of open versions has no names.
  /// Finds damaged files of the pool's index and damaged states of source files. If empty, the
  /// check leaves both out.
  std::function<Result<std::vector<DerivedFault>>()> derived_faults{};
  /// Returns whether labels that differ from the catalog are damage: the last writer noted that
  /// labels and catalog agree, and no writer has begun since. If empty, a difference may come from
  /// a writer or a crash.
  std::function<bool()> labels_are_complete{};
  /// True in an attached folder: all files but labels and `beside` are in an object store, whose
  /// check verifies the manifests. Also sets VerifyPace::is_distant.
  bool is_distant = false;
  /// Drops the cached data of an object store, so that a second read asks the store. If empty, all
  /// data is on the disk.
  std::function<void()> drop_cached{};
};

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
  [[nodiscard]] LostChunks lost_chunks() const;
  /// Returns the pages and recipes that run() could not read, in no order.
  [[nodiscard]] const std::vector<BrokenObject>& broken_objects() const { return broken_; }

 private:
  /// The findings about the store of a series, or about the pool.
  struct Store {
    SeriesId owner{};
    std::vector<DamagedChunks> damaged;
    std::set<ContainerNumber> checked;  // Numbers of the checked containers.
    std::vector<base::IdRun> found;     // Chunks found in containers at their recorded places.
    base::IdRuns present;               // `found`, after the check of all containers.
  };

  [[nodiscard]] Result<void> check_all();
  /// Reads all values of the catalog.
  [[nodiscard]] Result<void> check_values();
  /// Finds records whose owner has no record, and counters that are too low: signs of erased or
  /// older records.
  [[nodiscard]] Result<void> check_owners(const std::vector<catalog::SeriesRecord>& all);
  /// Reports labels that do not agree with the catalog.
  [[nodiscard]] Result<void> check_labels(const std::vector<catalog::SeriesRecord>& all);
  [[nodiscard]] Result<void> check_open_losses();
  [[nodiscard]] Result<void> check_pool();
  /// Compares the numbers of users of the pool's containers with the versions' lists.
  [[nodiscard]] Result<void> check_pool_users(const meta::Txn& txn);
  [[nodiscard]] Result<void> check_rewrite_counts(const meta::Txn& txn);
  [[nodiscard]] Result<void> check_pool_births(const meta::Txn& txn);
  /// Checks the aliases of the pool in the catalog and in the files of aliases.
  [[nodiscard]] Result<void> check_aliases();
  /// Adds the aliases to the present and to the damaged chunks of the pool.
  [[nodiscard]] Result<void> add_aliases();
  [[nodiscard]] Result<void> check_series(const catalog::SeriesRecord& series);
  [[nodiscard]] Result<void> check_records(Store& store);
  /// Checks all containers of a store.
  [[nodiscard]] Result<void> check_data(Store& store);
  [[nodiscard]] Result<bool> check_containers(Store& store);
  [[nodiscard]] VerifyJob job_of(SeriesId owner, const format::ContainerRecord& record) const;
  void check_container(Store& store, const store::SegmentReader& reader,
                       const format::ContainerRecord& record, const ContainerVerdict& verdict,
                       const std::multimap<ContainerNumber, catalog::LocationRecord>& runs_of);
  /// Reads the container again if the verdict shows damaged chunks. Returns the lost chunks. If the
  /// second read found no damage, adds a note to the damages from `first` on.
  [[nodiscard]] Result<base::IdRuns> confirm(
      const Store& store, const format::ContainerRecord& record, const ContainerVerdict& verdict,
      const std::multimap<ContainerNumber, catalog::LocationRecord>& runs_of, std::size_t first);
  void note_lost(SeriesId owner, const base::IdRuns& chunks);
  void check_beside(SeriesId series, const std::vector<catalog::VersionRecord>& versions);
  /// Adds notes on names beside versions that have another meaning or belong to versions.
  void note_names_beside(const std::string& path, const format::BesideImage& image,
                         const std::vector<catalog::VersionRecord>& versions);
  void check_manifests(const catalog::SeriesRecord& series,
                       const std::vector<catalog::VersionRecord>& versions);
  /// Reports an open version whose content is lost, as `varve repair` would.
  [[nodiscard]] Result<void> check_open_version(const catalog::SeriesRecord& series,
                                                const catalog::VersionRecord& version);
  [[nodiscard]] Result<void> check_newest_record(
      const catalog::SeriesRecord& series, const std::vector<catalog::VersionRecord>& versions);
  [[nodiscard]] Result<void> check_chunks(const catalog::SeriesRecord& series,
                                          const std::vector<catalog::VersionRecord>& versions);
  /// Reports chunks of the pool that are not stored, and a wrong list of the version's containers.
  /// Returns whether a writer has stored some of the chunks since the check of the pool.
  [[nodiscard]] Result<bool> check_pool_chunks(const meta::Txn& txn,
                                               const catalog::VersionRecord& version,
                                               const base::IdRuns& chunks);
  /// Reports a damaged name of a series or version that had to be replaced.
  void check_name(const std::string& of, const std::string& fault, const std::string& replacement);
  /// Adds notes on files in the repository's folder that do not belong to the repository.
  void note_strays();
  void check_derived();
  void check_index(const catalog::SeriesRecord& series,
                   const std::vector<catalog::VersionRecord>& versions);
  /// Counts the files that parity covers. With read_data, checks the parity data too.
  [[nodiscard]] Result<void> check_parity(SeriesId owner);
  /// Waits as long as the rate limit requires for `bytes`. Returns false if the check must stop.
  [[nodiscard]] bool keep_pace(std::uint64_t bytes) const;
  [[nodiscard]] Result<void> note_fault(const Result<void>& checked);
  /// Reports an error as damage, unless the process lacked resources: see files_.conclusive().
  void damage(std::string where, const Error& error, const std::string& advice = "");
  void damage(std::string where, std::string what) {
    report_.damages.push_back({std::move(where), std::move(what), {}});
  }
  /// Reports damage that makes chunks of a store unreadable.
  void damage(Store& store, std::string where, std::string what, std::vector<base::IdRun> ids);
  [[nodiscard]] std::string folder_of(SeriesId owner) const;
  /// Returns the segment store of a series or of the pool. Lifetime: as the checker.
  [[nodiscard]] store::SegmentStore& store_of(SeriesId owner);

  const format::DataCodecs& codecs_;
  const meta::Env& catalog_;
  io::WatchedFileSystem files_;
  std::map<SeriesId, std::unique_ptr<store::SegmentStore>> stores_;
  const std::string path_;
  const CheckOptions options_;
  const std::function<void(const CheckProgress&)> progress_;
  const CheckHelpers helpers_;
  // Random seed for the choice of containers with CheckOptions::percent.
  const std::uint64_t choice_;
  CheckReport report_;
  std::vector<BrokenObject> broken_;
  CheckProgress done_;

  std::map<StoreId, std::vector<base::IdRun>> lost_;
  Store pool_;
  Store store_;  // Of the present series.
};

}  // namespace varve::maintain
