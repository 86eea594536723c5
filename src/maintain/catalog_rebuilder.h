// SPDX-License-Identifier: Apache-2.0
// Rebuilds a catalog from manifests, labels and the headers of containers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "catalog/object_set.h"
#include "catalog/series_catalog.h"
#include "catalog/series_sequences.h"
#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/birth_check.h"
#include "maintain/container_scan.h"
#include "maintain/history_check.h"
#include "maintain/manifest_file.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::maintain {

struct RebuildReport {
  std::uint64_t series = 0;
  std::uint64_t versions = 0;  ///< Restored sealed versions.
  std::uint64_t containers = 0;
  std::uint64_t bytes_read = 0;
  /// Things that could not be restored, or not to their former state.
  std::vector<std::string> problems;
  /// Other things that the user should know.
  std::vector<std::string> notes;
  /// Manifests of versions that were left out. The caller puts them away: otherwise the next writer
  /// removes them.
  std::vector<std::string> left_out;
  /// Series whose labels list versions of another history. The caller keeps a copy of them.
  std::set<SeriesId> other_labels;
};

/// The caller's choices about files that may not belong to the repository.
struct RebuildChoices {
  /// Takes or leaves containers that only a search finds; nullopt: run() fails if there are any.
  std::optional<FoundBySearch> found{};
  /// True to leave out what does not belong to the history of most data; false: run() fails if
  /// there is such a thing.
  bool skip_mixed = false;
  /// Versions of the catalog in place, if it can be read. A sealed one whose data is whole stays,
  /// also where the labels do not list it.
  std::vector<ListedVersion> listed{};
};

/// Reads the repository's files and fills an empty catalog. Does not change the repository. For one
/// use by one thread.
class CatalogRebuilder {
 public:
  /// `catalog`: a new environment with the catalog's tables. Lifetime: all arguments must outlive
  /// the rebuilder.
  CatalogRebuilder(const format::DataCodecs& codecs, io::FileSystem& files,
                   std::string repository_path, const meta::Env& catalog,
                   const RebuildChoices& choices,
                   std::function<void(std::uint64_t bytes)> progress);

  /// Rebuilds the catalog. It is complete and on disk when the call returns.
  /// Errors: kInvalid if the caller has to choose (RebuildChoices).
  [[nodiscard]] Result<RebuildReport> run();

  /// Returns the labels that match the new catalog. The caller must write them, in this order,
  /// before it moves the new catalog into place. `superblock`: the text of varve.repo.
  [[nodiscard]] Result<std::vector<std::pair<SeriesId, std::string>>> labels(
      const std::string& superblock) const;

 private:
  /// The records collected for a version before they are stored.
  struct Version {
    std::optional<catalog::VersionRecord> record;
    std::optional<std::string> retention;
    std::optional<std::string> chunks;
    std::optional<std::string> links;
    std::optional<format::Births> births;  ///< Those that the manifest names.
    bool damaged = false;                  ///< Its manifest is damaged or missing.
    bool labelled = false;                 ///< The labels list it.
    bool is_kept = false;                  ///< The labels do not list it, but it is whole.
    /// The manifest's record, if it is of another seal than the labels list.
    std::optional<catalog::VersionRecord> of_other_seal;
  };

  [[nodiscard]] Result<void> rebuild_series(SeriesId series);
  /// Scans the containers of a store. Errors: kInvalid as run().
  [[nodiscard]] Result<ContainerScan> scan(store::SegmentStore& store, StoreId store_id);
  [[nodiscard]] Result<void> read_labels_of(SeriesId series);
  [[nodiscard]] Result<void> merge_clock(meta::WriteTxn& txn, std::string_view value);
  [[nodiscard]] Result<void> merge_sequence(meta::WriteTxn& txn, std::string_view value);
  /// Takes the sequence numbers of the series from labels.
  void note_sequences(SeriesId series, const Labels& labels);
  /// Reports the series that are missing or older than the newest labels say, and stores the
  /// numbers that the new catalog needs.
  [[nodiscard]] Result<void> put_series_sequences();
  /// Takes over a setting of labels.
  [[nodiscard]] Result<void> merge_setting(meta::WriteTxn& txn, std::string_view key,
                                           std::string_view value);
  void note_replaced(const Labels& labels);
  [[nodiscard]] Result<void> put_replaced();
  void report_lost_lock(VersionNumber number, const Version& version);
  /// Notes that a version with a manifest counts as deleted, because the labels do not list it.
  void note_deleted(VersionNumber number, const Version& version);
  [[nodiscard]] Result<void> read_manifests(SeriesId series, const ContainerScan& scan);
  [[nodiscard]] Result<void> choose_versions(SeriesId series);
  /// Takes over the locks of the catalog in place, where these are the later ones.
  void keep_locks(SeriesId series);
  /// Marks the versions to keep that the labels do not list.
  [[nodiscard]] Result<void> keep_whole_versions(SeriesId series, const ContainerScan& scan);
  /// Returns whether the folder has the tree and all chunks of a version. `own`: the chunks of the
  /// series' containers.
  [[nodiscard]] Result<bool> is_whole(SeriesId series, const Version& version,
                                      const base::IdRuns& own);
  /// Returns the chunks that the pool has, under their own ids or as aliases.
  [[nodiscard]] Result<base::IdRuns> chunks_of_pool();
  /// Returns how a version differs from the history of most data; "" if it does not. Its manifest
  /// prevails over labels of another seal, if its births are those of the containers.
  [[nodiscard]] Result<std::string> history_fault(SeriesId series, VersionNumber number,
                                                  Version& version, const ScannedStore& own,
                                                  const ScannedStore& pool);
  /// Drops the versions whose chunks are not those of the containers.
  [[nodiscard]] Result<void> drop_other_history(SeriesId series, const ScannedStore& own);
  /// Notes that something is left out because it belongs to another history.
  /// Errors: kInvalid if the caller did not choose that.
  [[nodiscard]] Result<void> leave_out(const std::string& where, const std::string& fault);
  [[nodiscard]] Result<void> put_versions(SeriesId series);
  [[nodiscard]] Result<void> put_locations(SeriesId series, store::SegmentStore& store,
                                           const ContainerScan& scan);
  /// Reports the containers whose number another one has. `wanted`: the chunks of all versions.
  void report_repeated(const ContainerScan& scan, const base::IdRuns& wanted);
  [[nodiscard]] Result<void> put_files(SeriesId series, const ContainerScan& scan,
                                       const std::map<ContainerNumber, std::uint64_t>& live_of);
  [[nodiscard]] Result<void> drop_unreachable(SeriesId series);
  [[nodiscard]] Result<void> scan_pool();
  /// Notes the births of the pool that all manifests name.
  [[nodiscard]] Result<void> note_pool_births();
  /// Notes what the present series needs of the pool.
  void add_to_pool();
  /// Notes the births of the pool in an encoded set of chunks.
  void note_births(std::string_view chunks);
  /// Notes the next birth of the pool from the labels.
  void note_next_birth(std::string_view setting);
  /// Puts the aliases that the files have, and adds their targets to the wanted chunks.
  [[nodiscard]] Result<void> put_aliases();
  [[nodiscard]] Result<void> put_pool();
  [[nodiscard]] Result<void> put_pool_users();
  /// Tells the user that a record's name had to be replaced.
  template <typename Record>
  void tell_replaced_name(const Record& record);
  void problem(std::string what) { report_.problems.push_back(std::move(what)); }
  [[nodiscard]] std::string series_directory(SeriesId series) const;
  [[nodiscard]] std::string name_of(VersionNumber number) const;

  const format::DataCodecs& codecs_;
  io::FileSystem& files_;
  const std::string path_;
  const meta::Env& catalog_;
  const RebuildChoices choices_;
  const std::function<void(std::uint64_t)> progress_;
  RebuildReport report_;
  std::vector<SeriesId> done_;
  std::set<std::string> series_names_;
  std::map<SeriesId, std::string> names_of_series_;  ///< Names in the new catalog.
  catalog::SeriesSequences of_labels_;               ///< Sequence numbers of the labels.
  std::uint64_t newest_ = 0;                         ///< Highest of them.
  std::vector<std::string> replaced_;                ///< Ids of catalogs, the newest last.
  catalog::SeriesSequences named_;                   ///< Numbers in the newest labels.

  /// The records collected for the pool.
  struct Pool {
    ContainerScan scan;
    RunsByBirth runs;  ///< The runs of the containers in `scan`.
    StoreBirths births;
    base::IdRuns wanted;  ///< Chunks to which the versions of the series so far refer.
    /// False if anything is damaged, or if a version is open: then all containers may be needed.
    bool whole = true;
    std::optional<VersionNumber> last_birth;  ///< Highest birth that was given, as far as known.
  };
  Pool pool_;

  // State of the present series, or of the pool at the end.
  std::optional<catalog::SeriesRecord> owner_;
  bool labelled_ = false;
  bool whole_ = true;  ///< False if anything is damaged. If true, unreferenced data is not needed.
  std::map<VersionNumber, Version> versions_;
  std::map<VersionNumber, base::IdRuns> chunks_of_;  ///< Chunks of the stored versions.
  std::set<VersionNumber> open_;
};

}  // namespace varve::maintain
