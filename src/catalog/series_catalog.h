// SPDX-License-Identifier: Apache-2.0
// The records of series and versions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/link_table.h"
#include "format/dir_node.h"
#include "meta/lmdb.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/rewrite.h"
#include "varve/types.h"

namespace varve::catalog {

struct SeriesRecord {
  SeriesId id{};
  std::string name;
  Timestamp created_at;
  std::uint32_t next_number = 1;  ///< Number of the next version; see take_version_number().
  Placement placement = Placement::kLineage;
  Rewrite rewrite = Rewrite::kNone;
  /// Reason why `name` replaces the stored name (catalog/stored_name.h); "" if `name` is stored.
  std::string name_fault;
};

/// A version with its root directory: `root.child` is the top page of a sealed version's tree.
struct VersionRecord {
  SeriesId series{};
  VersionNumber number{};
  std::string name;
  VersionState state = VersionState::kOpen;
  Timestamp opened_at;
  Timestamp sealed_at;
  std::uint64_t entries = 0;
  std::uint64_t logical_bytes = 0;
  std::uint64_t unique_bytes = 0;
  std::uint64_t stored_bytes = 0;
  format::DirEntry root;
  /// The sealed version whose tree the open version started as; none (0) if the tree started empty.
  /// The open version reads the base's objects until the seal, so the base must not be deleted
  /// before.
  VersionNumber base{};
  /// True only for an open version with a base: the seal takes the base's name and then deletes the
  /// base.
  bool replaces = false;
  /// True while a copy of an older version still fills the open version. The open version is
  /// invisible to users until complete, and recovery after a crash drops the version.
  bool unfinished = false;
  /// Reason why `name` replaces the stored name (catalog/stored_name.h); "" if `name` is stored.
  std::string name_fault;
};

/// Returns the store of a series' chunks. With the placement lineage, each series has a separate
/// store with the same number.
[[nodiscard]] StoreId store_of(SeriesId series);
/// Returns the settings in a record.
[[nodiscard]] SeriesSettings settings_of(const SeriesRecord& record);
/// Returns the public part of a record.
[[nodiscard]] SeriesInfo info_of(const SeriesRecord& record);

/// Decode the values of `series` and `versions` in the catalog (docs/FORMAT.md §7). A forbidden
/// name is replaced and does not make the record unreadable.
/// Errors: kCorrupt; kUnsupported for a series with settings unknown to this build.
[[nodiscard]] Result<SeriesRecord> decode_series(SeriesId id, std::string_view bytes);
[[nodiscard]] Result<VersionRecord> decode_version(SeriesId series, VersionNumber number,
                                                   std::string_view bytes);

/// Returns all series, in ascending id. Of several series with the same name, the first series
/// keeps the name.
[[nodiscard]] Result<std::vector<SeriesRecord>> list_series(const meta::Txn& txn);
[[nodiscard]] Result<std::optional<SeriesRecord>> find_series(const meta::Txn& txn, SeriesId id);
/// Returns the series displayed as `name`, or nullopt. Reads a few records, unless the catalog has
/// no sound table of names.
[[nodiscard]] Result<std::optional<SeriesRecord>> find_series_named(const meta::Txn& txn,
                                                                    std::string_view name);
/// Returns the highest number of a series; 0 if there is none.
[[nodiscard]] Result<SeriesId> last_series(const meta::Txn& txn);
/// Returns the number of the series' next version, and raises `owner.next_number`, which the caller
/// stores. No version on record has the number, even if an older record of the series was put back.
[[nodiscard]] Result<VersionNumber> take_version_number(const meta::Txn& txn, SeriesRecord& owner);
/// Returns the highest number of a version of the series on record; 0 if there is none.
[[nodiscard]] Result<std::uint32_t> last_version_number(const meta::Txn& txn, SeriesId series);
[[nodiscard]] Result<void> put_series(meta::WriteTxn& txn, const SeriesRecord& record);
[[nodiscard]] Result<void> erase_series(meta::WriteTxn& txn, SeriesId id);

/// Returns the versions of a series, in ascending number. Of several versions with the same name,
/// the first version keeps the name.
[[nodiscard]] Result<std::vector<VersionRecord>> list_versions(const meta::Txn& txn,
                                                               SeriesId series);
[[nodiscard]] Result<std::optional<VersionRecord>> find_version(const meta::Txn& txn,
                                                                SeriesId series,
                                                                VersionNumber number);
/// Returns the version displayed as `name`, or nullopt. Reads a few records, unless the catalog has
/// no sound table of names.
[[nodiscard]] Result<std::optional<VersionRecord>> find_version_named(const meta::Txn& txn,
                                                                      SeriesId series,
                                                                      std::string_view name);
/// Returns the sealed version with the highest number, or nullopt. Reads the later open versions,
/// too.
[[nodiscard]] Result<std::optional<VersionRecord>> newest_sealed_version(const meta::Txn& txn,
                                                                         SeriesId series);
/// Returns the open versions after the newest sealed version. In a settled repository, the result
/// has all open versions (docs/ORDERING.md O37). Reads one record more than the result has
/// versions.
[[nodiscard]] Result<std::vector<VersionRecord>> newest_open_versions(const meta::Txn& txn,
                                                                      SeriesId series);
[[nodiscard]] Result<void> put_version(meta::WriteTxn& txn, const VersionRecord& record);
/// Erases the record, and the records of the version's chunks, links and counts of rewriting.
[[nodiscard]] Result<void> erase_version(meta::WriteTxn& txn, SeriesId series,
                                         VersionNumber number);

/// Makes the table of names again from all series and versions.
[[nodiscard]] Result<void> rebuild_names(meta::WriteTxn& txn);

/// Returns the chunks of a sealed version.
[[nodiscard]] Result<base::IdRuns> version_chunks(const meta::Txn& txn, SeriesId series,
                                                  VersionNumber number);
[[nodiscard]] Result<void> put_version_chunks(meta::WriteTxn& txn, SeriesId series,
                                              VersionNumber number, const base::IdRuns& chunks);

/// Returns the names of a sealed version's hard-linked files, or nullopt if an earlier release did
/// not record the names. The caller can collect missing or damaged names from the tree.
/// Errors: kCorrupt if the names are damaged.
[[nodiscard]] Result<std::optional<LinkTable>> version_links(const meta::Txn& txn, SeriesId series,
                                                             VersionNumber number);
[[nodiscard]] Result<void> put_version_links(meta::WriteTxn& txn, SeriesId series,
                                             VersionNumber number, const LinkTable& links);

}  // namespace varve::catalog
