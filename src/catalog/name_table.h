// SPDX-License-Identifier: Apache-2.0
// The table `names`: the numbers of series and versions by name. Derived from the tables `series`
// and `versions`; catalog/series_catalog.cc changes all three tables together.
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

/// The records that need different names: all series, or the versions of one series.
class NameSpace {
 public:
  [[nodiscard]] static NameSpace of_series() { return NameSpace(std::string(1, kSeriesByte)); }
  [[nodiscard]] static NameSpace of_versions(SeriesId series);

  /// Returns the key of a name allowed by the rules.
  [[nodiscard]] std::string key(const meta::Env& catalog, std::string_view name) const;
  /// Returns the key of a record whose name is forbidden, or belongs to another record.
  [[nodiscard]] std::string odd_key(std::uint32_t number) const;
  /// Returns the common prefix of all keys by odd_key().
  [[nodiscard]] std::string odd_prefix() const;

 private:
  static constexpr char kSeriesByte = 1;
  static constexpr char kVersionByte = 2;
  explicit NameSpace(std::string prefix) : prefix_(std::move(prefix)) {}

  std::string prefix_;
};

/// The answer of the table.
struct NameAnswer {
  bool known = false;  ///< False if the table has no answer; the caller then reads all records.
  std::optional<std::uint32_t> number;  ///< The record with, or formerly with, the name.
};

/// Finds a name. The answer of an old or damaged table is unknown.
[[nodiscard]] NameAnswer find_name(const meta::Txn& txn, const NameSpace& space,
                                   std::string_view name);

/// The stored name of a record.
struct StoredName {
  std::string_view name;
  bool allowed = false;  ///< By the rules of varve/version_name.h.
};

/// Records the change of a record's name from `before` (nullopt: a new record) to `after` (nullopt:
/// an erased record).
[[nodiscard]] Result<void> change_name(meta::WriteTxn& txn, const NameSpace& space,
                                       std::uint32_t number,
                                       const std::optional<StoredName>& before,
                                       const std::optional<StoredName>& after);

/// Returns whether the table has as many names as there are series and versions. An earlier release
/// kept no table.
[[nodiscard]] Result<bool> has_all_names(const meta::Txn& txn);

}  // namespace varve::catalog
