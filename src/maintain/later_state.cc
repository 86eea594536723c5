// SPDX-License-Identifier: Apache-2.0
#include "maintain/later_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "maintain/tree_chunks.h"

namespace varve::maintain {

namespace {

using VersionsOfSeries = std::map<SeriesId, std::set<VersionNumber>>;

// Returns the part missing from a version; "" if the version has a tree and most of the chunks
// outside `shared`.
Result<std::string> fault_of(const meta::Env& rebuilt, const catalog::VersionRecord& version,
                             const base::IdRuns& shared, bool with_data) {
  bool readable = true;
  const auto used = tree_chunks(rebuilt, version.series, version.root, readable);
  if (!readable) return std::string("a part of its tree is missing");
  if (!with_data) return std::string();
  const auto own = used.subtract(shared);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(rebuilt));
  VARVE_TRY_ASSIGN(const auto located, located_chunks(txn, version.series, own));
  if (2 * located.size() >= own.size()) return std::string();
  return fmt::format("{} of its {} new chunks are missing", own.size() - located.size(),
                     own.size());
}

}  // namespace

Result<base::IdRuns> located_chunks(const meta::Txn& txn, SeriesId series,
                                    const base::IdRuns& ids) {
  std::vector<base::IdRun> runs;
  VARVE_TRY(catalog::for_each_location_of(txn, catalog::store_of(series), catalog::own_part(ids),
                                          [&](const catalog::LocationRecord& at) -> Result<bool> {
                                            runs.push_back({at.first, at.count});
                                            return true;
                                          }));
  VARVE_TRY_ASSIGN(const auto shared, catalog::located_ids(txn, catalog::pool_part(ids)));
  return base::IdRuns::from(std::move(runs)).intersect(ids).unite(shared);
}

Result<LaterState> judge_later_state(const meta::Env& rebuilt,
                                     const std::vector<ListedVersion>& known, bool with_data) {
  VersionsOfSeries older;
  for (const auto& version : known) {
    if (version.sealed) older[version.series].insert(version.number);
  }
  LaterState state;
  std::vector<catalog::SeriesRecord> all;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(rebuilt));
    VARVE_TRY_ASSIGN(all, catalog::list_series(txn));
  }
  for (const auto& series : all) {
    std::vector<catalog::VersionRecord> later;
    base::IdRuns shared;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(rebuilt));
      VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series.id));
      for (const auto& version : versions) {
        if (version.state != VersionState::kSealed) continue;
        if (!older[series.id].contains(version.number)) {
          later.push_back(version);
          continue;
        }
        VARVE_TRY_ASSIGN(const auto chunks,
                         catalog::version_chunks(txn, series.id, version.number));
        shared = shared.unite(chunks);
      }
    }
    for (const auto& version : later) {
      VARVE_TRY_ASSIGN(const auto fault, fault_of(rebuilt, version, shared, with_data));
      state.any_usable = state.any_usable || fault.empty();
      if (fault.empty() || !state.hollow.empty()) continue;
      state.hollow = series.name + "/" + version.name;
      state.fault = fault;
    }
  }
  return state;
}

}  // namespace varve::maintain
