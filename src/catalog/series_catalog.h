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
  /// Reason why `name` replaces the stored name (catalog/stored_name.h); "" if `name` is the stored
  /// one.
  std::string name_fault;
};

/// A version, with its root directory: `root.child` is the top page of its tree once sealed.
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
  /// The sealed version whose tree this open version started as; none (0) if it started empty. The
  /// open version reads the base's objects until it is sealed, so the base must not be deleted
  /// before.
  VersionNumber base{};
  /// True only for an open version with a base: the seal takes the base's name and then deletes the
  /// base.
  bool replaces = false;
  /// True while a copy of an older version still fills this open version. No user sees it, and
  /// recovery after a crash drops it.
  bool unfinished = false;
  /// Reason why `name` replaces the stored name (catalog/stored_name.h); "" if `name` is the stored
  /// one.
  std::string name_fault;
};

/// Returns the store that holds the chunks of a series. With the placement lineage, each series has
/// a store of its own with the same number.
[[nodiscard]] StoreId store_of(SeriesId series);
/// Returns the settings in a record.
[[nodiscard]] SeriesSettings settings_of(const SeriesRecord& record);
/// Returns the public part of a record.
[[nodiscard]] SeriesInfo info_of(const SeriesRecord& record);

/// Decode the values of `series` and `versions` in the catalog (docs/FORMAT.md §7). A name that is
/// not allowed is replaced and does not make the record unreadable.
/// Errors: kCorrupt; kUnsupported for a series whose settings this build does not have.
[[nodiscard]] Result<SeriesRecord> decode_series(SeriesId id, std::string_view bytes);
[[nodiscard]] Result<VersionRecord> decode_version(SeriesId series, VersionNumber number,
                                                   std::string_view bytes);

/// Returns all series, in ascending id. Of several with the same name, the first keeps it.
[[nodiscard]] Result<std::vector<SeriesRecord>> list_series(const meta::Txn& txn);
[[nodiscard]] Result<std::optional<SeriesRecord>> find_series(const meta::Txn& txn, SeriesId id);
/// Returns the series that is shown with this name, or nullopt. Reads a few records, unless the
/// catalog has no sound table of names.
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

/// Returns the versions of a series, in ascending number. Of several with the same name, the first
/// keeps it.
[[nodiscard]] Result<std::vector<VersionRecord>> list_versions(const meta::Txn& txn,
                                                               SeriesId series);
[[nodiscard]] Result<std::optional<VersionRecord>> find_version(const meta::Txn& txn,
                                                                SeriesId series,
                                                                VersionNumber number);
/// Returns the version that is shown with this name, or nullopt. Reads a few records, unless the
/// catalog has no sound table of names.
[[nodiscard]] Result<std::optional<VersionRecord>> find_version_named(const meta::Txn& txn,
                                                                      SeriesId series,
                                                                      std::string_view name);
/// Returns the sealed version with the highest number, or nullopt. Reads the open versions after
/// it.
[[nodiscard]] Result<std::optional<VersionRecord>> newest_sealed_version(const meta::Txn& txn,
                                                                         SeriesId series);
/// Returns the open versions after the newest sealed one. In a settled repository, these are all
/// open versions (docs/ORDERING.md O37). Reads one more record than there are such versions.
[[nodiscard]] Result<std::vector<VersionRecord>> newest_open_versions(const meta::Txn& txn,
                                                                      SeriesId series);
[[nodiscard]] Result<void> put_version(meta::WriteTxn& txn, const VersionRecord& record);
/// Erases the record, and those of the version's chunks, links and counts of rewriting.
[[nodiscard]] Result<void> erase_version(meta::WriteTxn& txn, SeriesId series,
                                         VersionNumber number);

/// Makes the table of names again from all series and versions.
[[nodiscard]] Result<void> rebuild_names(meta::WriteTxn& txn);

/// Returns the chunks that a sealed version refers to.
[[nodiscard]] Result<base::IdRuns> version_chunks(const meta::Txn& txn, SeriesId series,
                                                  VersionNumber number);
[[nodiscard]] Result<void> put_version_chunks(meta::WriteTxn& txn, SeriesId series,
                                              VersionNumber number, const base::IdRuns& chunks);

/// Returns the names of a sealed version's hard-linked files, or nullopt if an earlier release did
/// not record them. The caller can collect missing or damaged ones from the tree.
/// Errors: kCorrupt if they are damaged.
[[nodiscard]] Result<std::optional<LinkTable>> version_links(const meta::Txn& txn, SeriesId series,
                                                             VersionNumber number);
[[nodiscard]] Result<void> put_version_links(meta::WriteTxn& txn, SeriesId series,
                                             VersionNumber number, const LinkTable& links);

}  // namespace varve::catalog
