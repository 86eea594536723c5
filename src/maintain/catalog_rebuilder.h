// SPDX-License-Identifier: Apache-2.0
// Rebuilds a catalog from manifests, labels and the headers of containers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "catalog/object_set.h"
#include "catalog/series_catalog.h"
#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/birth_check.h"
#include "maintain/container_scan.h"
#include "maintain/history_check.h"
#include "maintain/label_facts.h"
#include "maintain/manifest_file.h"
#include "maintain/pool_claims.h"
#include "meta/lmdb.h"
#include "store/folder_store.h"
#include "varve/result.h"

namespace varve::maintain {

struct RebuildReport {
  std::uint64_t series = 0;
  std::uint64_t versions = 0;  ///< Restored sealed versions.
  std::uint64_t containers = 0;
  std::uint64_t bytes_read = 0;
  /// Lost data, and data restored to another state than the former state.
  std::vector<std::string> problems;
  /// Further notes for the user.
  std::vector<std::string> notes;
  /// Manifests of versions that were left out. The caller must put the files away: otherwise the
  /// next writer removes them.
  std::vector<std::string> left_out;
  /// The same, of versions with pages that other versions may need. The caller must copy the files.
  std::vector<std::string> left_out_in_use;
  /// Series whose labels list versions of another history. The caller keeps a copy of the labels.
  std::set<SeriesId> other_labels;
};

/// The caller's choices about files that may not belong to the repository.
struct RebuildChoices {
  /// Takes or leaves containers found only by a search; nullopt: run() fails if there are any.
  std::optional<FoundBySearch> found{};
  /// True to leave out data that does not belong to the history of most data; false: run() fails if
  /// the folder has data of another history.
  bool skip_mixed = false;
  /// Versions of the catalog in place, if readable. A sealed version with all its data stays, even
  /// if the labels do not list the version.
  std::vector<ListedVersion> listed{};
  /// The catalog in place, if readable. Replaces damaged and missing manifests. Lifetime: outlives
  /// the rebuilder.
  const meta::Env* in_place = nullptr;
};

/// Reads the repository's files and fills an empty catalog. Does not change the repository. For one
/// use by one thread.
class CatalogRebuilder {
 public:
  /// `open_store`: empty if all data is on the disk. `catalog`: a new environment with the
  /// catalog's tables. Lifetime: all arguments must outlive the rebuilder.
  CatalogRebuilder(const format::DataCodecs& codecs, io::FileSystem& files,
                   store::StoreOpener open_store, std::string repository_path,
                   const meta::Env& catalog, const RebuildChoices& choices,
                   std::function<void(std::uint64_t bytes)> progress);

  /// Rebuilds the catalog. When the call returns, the catalog is complete and on disk.
  /// Errors: kInvalid if the caller has to choose (RebuildChoices).
  [[nodiscard]] Result<RebuildReport> run();

  /// Returns the labels that match the new catalog. The caller must write the labels, in the
  /// returned order, before moving the new catalog into place. `superblock`: the text of
  /// varve.repo.
  [[nodiscard]] Result<std::vector<std::pair<SeriesId, std::string>>> labels(
      const std::string& superblock) const;

 private:
  /// The records of a version, collected before they are stored.
  struct Version {
    std::optional<catalog::VersionRecord> record;
    std::optional<std::string> retention;
    std::optional<std::string> chunks;
    std::optional<std::string> links;
    std::optional<format::Births> births;  ///< Births named by the manifest.
    bool damaged = false;                  ///< The manifest is damaged or missing.
    std::string fault;                     ///< The damage; "" if sound.
    bool labelled = false;                 ///< The labels list the version.
    bool is_kept = false;                  ///< Not in the labels, but whole.
    bool is_removed = false;               ///< The labels note the deletion.
    /// The manifest's record, if the manifest is of another seal than the labels.
    std::optional<catalog::VersionRecord> of_other_seal;
  };

  [[nodiscard]] Result<void> rebuild_series(SeriesId series);
  /// Scans the containers of a store. Errors: kInvalid as run().
  [[nodiscard]] Result<ContainerScan> scan(store::SegmentStore& store, StoreId store_id);
  [[nodiscard]] Result<void> read_labels_of(SeriesId series);
  void report_lost_lock(VersionNumber number, const Version& version);
  /// Reports a version with a manifest that the labels do not list. Keeps the manifest if the
  /// labels do not note the deletion either, although they note deletions (O63).
  void note_deleted(VersionNumber number, const Version& version);
  [[nodiscard]] Result<void> read_manifests(SeriesId series, const ContainerScan& scan);
  [[nodiscard]] Result<void> choose_versions(SeriesId series);
  /// Takes over the later locks of the catalog in place.
  void keep_locks(SeriesId series);
  /// Marks the versions to keep although the labels do not list the versions.
  [[nodiscard]] Result<void> keep_whole_versions(SeriesId series, const ContainerScan& scan);
  /// Returns whether the folder has the tree and all chunks of a version. `own`: the chunks of the
  /// series' containers.
  [[nodiscard]] Result<bool> is_whole(SeriesId series, const Version& version,
                                      const base::IdRuns& own);
  /// Returns the chunks of the pool, stored under their own ids or as aliases.
  [[nodiscard]] Result<base::IdRuns> chunks_of_pool();
  /// Returns the difference between a version and the history of most data; "" if there is none.
  /// The manifest prevails over labels of another seal if the manifest's births agree with the
  /// containers.
  [[nodiscard]] Result<std::string> history_fault(SeriesId series, VersionNumber number,
                                                  Version& version, const ScannedStore& own,
                                                  const ScannedStore& pool);
  /// Drops the versions whose chunks differ from the chunks in the containers.
  [[nodiscard]] Result<void> drop_other_history(SeriesId series, const ScannedStore& own);
  /// Notes that a file or version is left out because of another history.
  /// Errors: kInvalid if the caller did not choose RebuildChoices::skip_mixed.
  [[nodiscard]] Result<void> leave_out(const std::string& where, const std::string& fault);
  [[nodiscard]] Result<void> put_versions(SeriesId series);
  [[nodiscard]] Result<void> put_locations(SeriesId series, store::SegmentStore& store,
                                           const ContainerScan& scan);
  /// Reports the containers with a repeated number. `wanted`: the chunks of all versions.
  void report_repeated(const ContainerScan& scan, const base::IdRuns& wanted);
  [[nodiscard]] Result<void> put_files(SeriesId series, const ContainerScan& scan,
                                       const std::map<ContainerNumber, std::uint64_t>& live_of);
  [[nodiscard]] Result<void> drop_unreachable(SeriesId series);
  [[nodiscard]] Result<void> scan_pool();
  /// Stores the aliases found in the files of aliases, and adds their targets to the wanted chunks.
  [[nodiscard]] Result<void> put_aliases();
  [[nodiscard]] Result<void> put_pool();
  /// Tells the user about a record's name that had to be replaced.
  template <typename Record>
  void tell_replaced_name(const Record& record);
  void problem(std::string what) { report_.problems.push_back(std::move(what)); }
  [[nodiscard]] std::string series_directory(SeriesId series) const;
  /// Opens the segment store of a series or of the pool.
  [[nodiscard]] std::unique_ptr<store::SegmentStore> open_store(SeriesId owner);
  [[nodiscard]] std::string name_of(VersionNumber number) const;

  const format::DataCodecs& codecs_;
  io::FileSystem& files_;
  const store::StoreOpener open_store_;
  const std::string path_;
  const meta::Env& catalog_;
  const RebuildChoices choices_;
  const std::function<void(std::uint64_t)> progress_;
  RebuildReport report_;
  std::vector<SeriesId> done_;
  std::set<std::string> series_names_;
  std::map<SeriesId, std::string> names_of_series_;  ///< Names in the new catalog.
  LabelFacts label_facts_;

  /// The records collected for the pool.
  struct Pool {
    ContainerScan scan;
    RunsByBirth runs;  ///< The runs of the containers in `scan`.
    StoreBirths births;
    PoolClaims claims;  ///< Incomplete if anything is damaged, or if a version is open.
  };
  Pool pool_;

  // State of the present series, or of the pool at the end.
  std::optional<catalog::SeriesRecord> owner_;
  /// The labels that were read.
  enum class LabelsFound : std::uint8_t { kNone, kPlain, kNotingDeletions };
  LabelsFound labels_found_ = LabelsFound::kNone;
  bool whole_ = true;  ///< False if anything is damaged. If true, unreferenced data is not needed.
  std::map<VersionNumber, Version> versions_;
  std::map<VersionNumber, base::IdRuns> chunks_of_;  ///< Chunks of the stored versions.
  std::set<VersionNumber> open_;
};

}  // namespace varve::maintain
