// SPDX-License-Identifier: Apache-2.0
// The table `names`: the numbers of series and versions by name. It is derived from the tables
// `series` and `versions`, and catalog/series_catalog.cc changes it together with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The records among which a name is unique: all series, or the versions of one series.
class NameSpace {
 public:
  [[nodiscard]] static NameSpace of_series() { return NameSpace(std::string(1, kSeriesByte)); }
  [[nodiscard]] static NameSpace of_versions(SeriesId series);

  /// Returns the key of a name that the rules allow.
  [[nodiscard]] std::string key(const meta::Env& catalog, std::string_view name) const;
  /// Returns the key of a record whose name is not allowed, or is another record's.
  [[nodiscard]] std::string odd_key(std::uint32_t number) const;
  /// Returns what the keys of all such records begin with.
  [[nodiscard]] std::string odd_prefix() const;

 private:
  static constexpr char kSeriesByte = 1;
  static constexpr char kVersionByte = 2;
  explicit NameSpace(std::string prefix) : prefix_(std::move(prefix)) {}

  std::string prefix_;
};

/// The answer of the table.
struct NameAnswer {
  bool known = false;  ///< False if the table cannot tell; the caller then looks at all records.
  std::optional<std::uint32_t> number;  ///< The record that has, or had, the name.
};

/// Looks a name up. An old or damaged table answers that it cannot tell.
[[nodiscard]] NameAnswer find_name(const meta::Txn& txn, const NameSpace& space,
                                   std::string_view name);

/// A name of a record, as it is stored.
struct StoredName {
  std::string_view name;
  bool allowed = false;  ///< By the rules of varve/version_name.h.
};

/// Records that a record's name changes from `before` (nullopt: it is new) to `after` (nullopt: it
/// is erased).
[[nodiscard]] Result<void> change_name(meta::WriteTxn& txn, const NameSpace& space,
                                       std::uint32_t number,
                                       const std::optional<StoredName>& before,
                                       const std::optional<StoredName>& after);

/// Returns whether the table has as many names as there are series and versions. An earlier release
/// kept no table.
[[nodiscard]] Result<bool> has_all_names(const meta::Txn& txn);

}  // namespace varve::catalog
