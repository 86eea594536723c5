// SPDX-License-Identifier: Apache-2.0
#include "maintain/catalog_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/name_table.h"
#include "maintain/owners.h"
#include "maintain/tree_chunks.h"
#include "meta/schema.h"
#include "meta/value_check.h"

namespace varve::maintain {

Result<void> check_values(const CheckScope& scope, CheckFindings& findings) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope.catalog));
  const auto& tables = meta::catalog::kTables;
  for (meta::TableIndex table = 0; table < tables.size(); ++table) {
    VARVE_TRY_ASSIGN(const auto faults, meta::find_value_faults(txn, table));
    if (faults.values == 0) continue;
    findings.damage(scope.catalog_path(), fmt::format("{} values of the table `{}`: {}",
                                                      faults.values, tables[table], faults.first));
  }
  return {};
}

// The storage of an encrypted repository can erase a record, or restore an older value of the same
// record. Remaining records then lack their owner, or have numbers not yet given.
Result<void> check_owners(const CheckScope& scope, CheckFindings& findings,
                          const std::vector<catalog::SeriesRecord>& all) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope.catalog));
  std::set<std::uint32_t> known;
  for (const auto& series : all) {
    const auto number = static_cast<std::uint32_t>(series.id);
    known.insert(number);
    const auto last = catalog::last_version_number(txn, series.id);
    if (last && *last >= series.next_number) {
      findings.damage(scope.catalog_path(),
                      fmt::format("the record of series {} is older than its versions", number));
    }
  }
  for (const auto table : {meta::catalog::kVersions, meta::catalog::kVersionChunks}) {
    VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, table));
    for (auto at = cursor.seek(""); at && *at && (*at)->key.size() == 8;) {
      const auto series = base::load_be32((*at)->key);
      const auto version = static_cast<VersionNumber>(base::load_be32((*at)->key.substr(4)));
      const auto record = catalog::find_version(txn, SeriesId{series}, version);
      if (!known.contains(series)) {
        findings.damage(scope.catalog_path(),
                        fmt::format("series {} has versions, but no record", series));
        at = cursor.seek_behind(base::be32(series));
        continue;
      }
      if (record && !*record) {
        findings.damage(scope.catalog_path(),
                        fmt::format("version {} of series {} has chunks, but no record",
                                    static_cast<std::uint32_t>(version), series));
      }
      at = cursor.next();
    }
  }
  known.insert(static_cast<std::uint32_t>(kPoolOwner));
  for (const auto number : known) {
    const auto store = catalog::store_of(SeriesId{number});
    const auto counters = catalog::find_counters(txn, store);
    if (!counters) continue;  // The values were checked.
    const auto least = catalog::least_counters(txn, store);
    if (least.next_container > counters->next_container ||
        least.next_segment > counters->next_segment) {
      findings.damage(scope.catalog_path(),
                      fmt::format("the counters of store {} are older than its files", number));
    }
  }
  VARVE_TRY_ASSIGN(const bool complete, catalog::has_all_names(txn));
  if (!complete) {
    findings.damage(scope.catalog_path(), "the numbers of series, versions and names do not fit");
  }
  return {};
}

// Compares the tree of the newest version with the record of the version's chunks. A seal derives
// the record from the record of the version before, and deletions rely on the record.
Result<void> check_newest_record(const CheckScope& scope, CheckFindings& findings,
                                 const catalog::SeriesRecord& series,
                                 const std::vector<catalog::VersionRecord>& versions) {
  const auto newest = std::find_if(versions.rbegin(), versions.rend(), [](const auto& version) {
    return version.state == VersionState::kSealed;
  });
  if (newest == versions.rend()) return {};
  bool whole = true;  // TreeChecker reports unreadable parts.
  const auto used = tree_chunks(scope.catalog, series.id, newest->root, whole);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope.catalog));
  const auto recorded = catalog::version_chunks(txn, series.id, newest->number);
  if (!recorded) return {};  // Another part of the check reports the record.
  const auto lacking = used.subtract(*recorded);
  // A daemon may have deleted the version meanwhile.
  VARVE_TRY_ASSIGN(const auto still, catalog::find_version(txn, series.id, newest->number));
  if (lacking.size() == 0 || !still) return {};
  findings.damage(
      scope.catalog_path(),
      fmt::format("{} chunks of {}/{} are not in the record of its chunks; run `varve repair` "
                  "before any version is deleted",
                  lacking.size(), series.name, newest->name));
  return {};
}

}  // namespace varve::maintain
