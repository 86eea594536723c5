// SPDX-License-Identifier: Apache-2.0
// Leaves out the files of another history of the repository.
#include <fmt/core.h>

#include <algorithm>

#include "maintain/catalog_rebuilder.h"
#include "maintain/history_check.h"
#include "maintain/owners.h"
#include "meta/schema.h"

namespace varve::maintain {

Result<void> CatalogRebuilder::leave_out(const std::string& where, const std::string& fault) {
  if (!choices_.skip_mixed) return mixed_histories(where, fault);
  whole_ = false;
  problem(fmt::format("{}: {}; they are left out", where, fault));
  return {};
}

Result<std::string> CatalogRebuilder::history_fault(SeriesId series, VersionNumber number,
                                                    Version& version, const ScannedStore& own,
                                                    const ScannedStore& pool) {
  const std::string other_seal =
      "the labels list another version under this number than the manifest has";
  if (version.of_other_seal) {
    VARVE_TRY(leave_out(name_of(number) + " of the labels", other_seal));
    report_.other_labels.insert(series);
    if (!version.births || !version.chunks) return other_seal;
    version.record = std::move(version.of_other_seal);
  }
  const bool sealed = version.record && version.record->state == VersionState::kSealed;
  if (!version.births || (version.record && (!sealed || !version.chunks))) return std::string();
  // Without a record, the manifest is of a deleted version with pages that further versions may
  // use.
  VersionBirths one{series, number, *version.births, {}};
  if (version.record) {
    VARVE_TRY_ASSIGN(one.chunks, base::IdRuns::decode(*version.chunks));
  }
  return check_births(codecs_.frames().keys(), one, own, pool);
}

Result<void> CatalogRebuilder::drop_other_history(SeriesId series, const ScannedStore& own) {
  const auto segments = open_store(kPoolOwner);
  auto& shared = *segments;
  const ScannedStore pool{shared, kPoolStore, pool_.runs, pool_.births};
  for (auto it = versions_.begin(); it != versions_.end();) {
    auto& [number, version] = *it;
    VARVE_TRY_ASSIGN(const auto fault, history_fault(series, number, version, own, pool));
    if (fault.empty()) {
      ++it;
      continue;
    }
    const auto path = manifest_path(series_directory(series), number);
    VARVE_TRY(leave_out(name_of(number) + " (" + path + ")", fault));
    report_.left_out.push_back(path);
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
    for (const auto table : {meta::catalog::kNodes, meta::catalog::kRecipes}) {
      VARVE_TRY(txn.erase_prefix(table, meta::version_key(series, number)));
    }
    VARVE_TRY(txn.commit());
    report_lost_lock(number, version);
    owner_->next_number = std::max(owner_->next_number, number_after(number));
    it = versions_.erase(it);
  }
  return {};
}

}  // namespace varve::maintain
