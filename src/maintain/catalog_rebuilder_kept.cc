// SPDX-License-Identifier: Apache-2.0
// Keeps versions of the catalog in place that are not in the labels.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "maintain/catalog_rebuilder.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"
#include "maintain/tree_chunks.h"
#include "store/folder_store.h"

namespace varve::maintain {

namespace {

bool is_same_sealed(const std::optional<catalog::VersionRecord>& record, const ListedVersion& one) {
  return one.sealed && record && record->state == VersionState::kSealed &&
         record->sealed_at == one.sealed_at;
}

}  // namespace

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
// content. Without a catalog in place, the labels' notes of deletions decide first (O63).
Result<void> CatalogRebuilder::keep_whole_versions(SeriesId series, const ContainerScan& scan) {
  if (labels_found_ == LabelsFound::kNone) return {};
  std::map<VersionNumber, const ListedVersion*> listed;
  for (const auto& one : choices_.listed) {
    if (one.series == series) listed[one.number] = &one;
  }
  const auto own = chunks_in(scan);
  for (auto& [number, version] : versions_) {
    const bool is_sealed =
        version.record && version.record->state == VersionState::kSealed && !version.damaged;
    const bool is_deleted = static_cast<std::uint32_t>(number) < owner_->next_number;
    if (version.labelled || !is_sealed || !is_deleted) continue;
    const auto in_place = listed.find(number);
    const bool is_in_place =
        in_place != listed.end() && is_same_sealed(version.record, *in_place->second);
    const bool is_unknown = choices_.listed.empty() && !version.is_removed;
    if (!is_in_place && !is_unknown) continue;
    VARVE_TRY_ASSIGN(const bool whole, is_whole(series, version, own));
    if (!whole) continue;
    version.is_kept = true;
    if (is_in_place) version.record->name = in_place->second->own_name;
    const bool is_taken =
        std::ranges::any_of(versions_, [&, of = number, &own_version = version](const auto& other) {
          return other.first != of && other.second.record &&
                 other.second.record->name == own_version.record->name;
        });
    if (is_taken) version.record->name += fmt::format(".{}", static_cast<std::uint32_t>(number));
    report_.notes.push_back(name_of(number) +
                            (is_in_place ? ": the labels of the series do not list this version, "
                                         : ": the labels of the series neither list this version "
                                           "nor note its deletion, ") +
                            "but all its data is here, so the repair keeps it; `varve rm` deletes "
                            "it");
  }
  return {};
}

Result<bool> CatalogRebuilder::is_whole(SeriesId series, const Version& version,
                                        const base::IdRuns& own) {
  if (!version.chunks) return false;
  const auto recorded = base::IdRuns::decode(*version.chunks);
  // First without the tree: a deleted version seldom has all its chunks.
  if (!recorded || catalog::own_part(*recorded).subtract(own).size() != 0) return false;
  bool readable = true;
  const auto used = tree_chunks(catalog_, series, version.record->root, readable);
  if (!readable) return false;
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
