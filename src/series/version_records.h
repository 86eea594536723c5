// SPDX-License-Identifier: Apache-2.0
// Looks up a series' records in the catalog. Each call sees the catalog's present state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/link_table.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::series {

/// Returns the error of a missing series or version: kNotFound.
[[nodiscard]] Error no_series();
[[nodiscard]] Error no_version();

/// Reads the records of one series. Thread-safe. Lifetime: the catalog outlives the object.
class VersionRecords {
 public:
  VersionRecords(const meta::Env& catalog, SeriesId series) : catalog_(catalog), series_(series) {}

  /// Errors: kNotFound if the series was removed.
  [[nodiscard]] Result<catalog::SeriesRecord> owner() const;
  /// Returns all records in ascending number, open and unfinished versions included.
  [[nodiscard]] Result<std::vector<catalog::VersionRecord>> all() const;
  /// Errors: kNotFound if the version does not exist.
  [[nodiscard]] Result<catalog::VersionRecord> find(VersionNumber number) const;
  /// Returns the version shown with the name, open and unfinished versions included.
  [[nodiscard]] Result<std::optional<catalog::VersionRecord>> find_named(
      std::string_view name) const;
  /// Returns the open version's record, or nullopt. Leaves out unfinished copies.
  [[nodiscard]] Result<std::optional<catalog::VersionRecord>> open() const;
  [[nodiscard]] Result<std::optional<catalog::VersionRecord>> newest_sealed() const;
  /// Returns the hard-linked names of a sealed version; nullopt if no links are stored.
  [[nodiscard]] Result<std::optional<catalog::LinkTable>> links(VersionNumber number) const;
  /// Errors: kExists if a version has the name; kInvalid if the name is not allowed.
  [[nodiscard]] Result<void> check_new_name(std::string_view name) const;

 private:
  const meta::Env& catalog_;
  const SeriesId series_;
};

/// Returns the user's view of a version's record.
[[nodiscard]] VersionInfo version_info(const catalog::VersionRecord& record,
                                       const std::string& series_name);

}  // namespace varve::series
