// SPDX-License-Identifier: Apache-2.0
// Keeps versions of the catalog in place that are not in the labels.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "catalog/birth_table.h"
#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"
#include "maintain/tree_chunks.h"
#include "maintain/write_batch.h"
#include "meta/schema.h"
#include "store/folder_store.h"

namespace varve::maintain {

namespace {

bool is_same_sealed(const std::optional<catalog::VersionRecord>& record, const ListedVersion& one) {
  return one.sealed && record && record->state == VersionState::kSealed &&
         record->sealed_at == one.sealed_at;
}

}  // namespace

// A manifest repeats records of the catalog, also of an older catalog: the records of a sealed
// version never change.
Result<void> CatalogRebuilder::replace_manifests(SeriesId series) {
  for (auto& [number, version] : versions_) {
    if (version.fault.empty()) continue;
    bool is_replaced = false;
    if (choices_.in_place != nullptr) {
      VARVE_TRY_ASSIGN(const auto from, meta::ReadTxn::begin(*choices_.in_place));
      VARVE_TRY_ASSIGN(is_replaced, take_version(from, series, number, version));
    }
    version.damaged = !is_replaced;
    if (is_replaced) {
      report_.notes.push_back(version.fault + "; the catalog in place has all of " +
                              name_of(number));
    } else {
      whole_ = false;
      problem(version.fault);
    }
  }
  return {};
}

Result<bool> CatalogRebuilder::take_version(const meta::Txn& from, SeriesId series,
                                            VersionNumber number, Version& version) {
  const auto known = catalog::find_version(from, series, number);
  const bool is_same = known && *known && version.record &&
                       version.record->state == VersionState::kSealed &&
                       is_same_seal(**known, *version.record);
  if (!is_same) return false;
  WriteBatch batch(catalog_);
  const auto objects =
      meta::object_key(series, std::uint64_t{static_cast<std::uint32_t>(number)} << 32);
  for (const auto table : {meta::catalog::kNodes, meta::catalog::kRecipes}) {
    const auto copy = [&](std::string_view key, std::string_view value) -> Result<bool> {
      VARVE_TRY_ASSIGN(auto* const txn, batch.txn(value.size()));
      VARVE_TRY(txn->put(table, key, value));
      return true;
    };
    VARVE_TRY(meta::for_each_prefix(from, table, std::string_view(objects).substr(0, 8), copy));
  }
  VARVE_TRY(batch.commit());
  const auto take = [&](meta::TableIndex table, std::optional<std::string>& to) -> Result<void> {
    VARVE_TRY_ASSIGN(const auto value, from.get(table, meta::version_key(series, number)));
    if (value && !to) to = std::string(*value);
    return {};
  };
  VARVE_TRY(take(meta::catalog::kVersionChunks, version.chunks));
  VARVE_TRY(take(meta::catalog::kVersionLinks, version.links));
  if (!version.births) {
    VARVE_TRY_ASSIGN(auto births, catalog::births_named_by(from, series, number));
    version.births = std::move(births);
  }
  if (!version.chunks) return false;
  note_births(*version.chunks);
  bool readable = true;
  static_cast<void>(tree_chunks(catalog_, series, version.record->root, readable));
  return readable;
}

// No lock is ever made shorter.
void CatalogRebuilder::keep_locks(SeriesId series) {
  for (const auto& one : choices_.listed) {
    const auto its = versions_.find(one.number);
    if (one.series != series || its == versions_.end()) continue;
    auto& version = its->second;
    if (!is_same_sealed(version.record, one) || one.locked_until == Timestamp{}) continue;
    catalog::RetentionRecord retention;
    if (version.retention) {
      const auto known = catalog::decode_retention(*version.retention);
      if (known) retention = *known;
    }
    if (retention.locked_until >= one.locked_until) continue;
    retention.locked_until = one.locked_until;
    version.retention = catalog::encode_retention(retention);
  }
}

// A deletion frees data needed only by the deleted version. A version with all its data may
// therefore be deleted only in another state of the repository, and nothing else has the version's
// content.
Result<void> CatalogRebuilder::keep_whole_versions(SeriesId series, const ContainerScan& scan) {
  if (!labelled_ || choices_.listed.empty()) return {};
  const auto own = chunks_in(scan);
  for (const auto& one : choices_.listed) {
    const auto its = versions_.find(one.number);
    if (one.series != series || its == versions_.end()) continue;
    auto& version = its->second;
    const bool is_same = is_same_sealed(version.record, one);
    const bool is_deleted = static_cast<std::uint32_t>(one.number) < owner_->next_number;
    if (version.labelled || version.damaged || !is_same || !is_deleted) continue;
    VARVE_TRY_ASSIGN(version.is_kept, is_whole(series, version, own));
    if (!version.is_kept) continue;
    version.record->name = one.own_name;
    const bool is_taken = std::ranges::any_of(versions_, [&](const auto& other) {
      return other.first != one.number && other.second.record &&
             other.second.record->name == one.own_name;
    });
    if (is_taken)
      version.record->name += fmt::format(".{}", static_cast<std::uint32_t>(one.number));
    report_.notes.push_back(name_of(one.number) +
                            ": the labels of the series do not list this version, but all its "
                            "data is here, so the repair keeps it; `varve rm` deletes it");
  }
  return {};
}

Result<bool> CatalogRebuilder::is_whole(SeriesId series, const Version& version,
                                        const base::IdRuns& own) {
  if (!version.chunks) return false;
  const auto recorded = base::IdRuns::decode(*version.chunks);
  bool readable = true;
  const auto used = tree_chunks(catalog_, series, version.record->root, readable);
  if (!recorded || !readable) return false;
  const auto all = recorded->unite(used);
  if (catalog::own_part(all).subtract(own).size() != 0) return false;
  const auto shared = catalog::pool_part(all);
  if (shared.size() == 0) return true;
  VARVE_TRY_ASSIGN(const auto pool, chunks_of_pool());
  return shared.subtract(pool).size() == 0;
}

Result<base::IdRuns> CatalogRebuilder::chunks_of_pool() {
  const store::FolderPath folder{&files_, series_directory(kPoolOwner)};
  VARVE_TRY_ASSIGN(const auto aliases, find_aliases(folder, pool_.scan, pool_.births));
  std::vector<base::IdRun> runs;
  for (const auto& record : aliases.records) runs.push_back({record.run.first, record.run.count});
  return chunks_in(pool_.scan).unite(base::IdRuns::from(std::move(runs)));
}

}  // namespace varve::maintain
