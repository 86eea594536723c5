// SPDX-License-Identifier: Apache-2.0
#include "maintain/open_version_repair.h"

#include <utility>

#include "catalog/series_catalog.h"
#include "maintain/open_version_fault.h"

namespace varve::maintain {

Result<void> OpenVersionRepair::scan(const meta::Env& catalog,
                                     std::vector<std::string>& lost_parts) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
    for (const auto& record : records) {
      VARVE_TRY_ASSIGN(const auto fault, fault_of_open_version(scope_.files, scope_.path(), txn,
                                                               record, scope_.has_lock));
      if (!fault) continue;
      scope_.add_step(
          RepairStep::Kind::kOpenVersion, scope_.path() + "/staging",
          series.name + "/" + record.name + " was open, and " + *fault + "; the repair drops it");
      dropped_.push_back(record);
    }
  }
  VARVE_TRY_ASSIGN(const auto losses,
                   find_open_losses({scope_.files, scope_.path(), catalog, scope_.codecs.keys()},
                                    scope_.helpers.find_unstored, scope_.has_lock));
  for (const auto& loss : losses) lost_parts.push_back(describe_open_loss(loss));
  return {};
}

// The next write to the series frees the versions' chunks, as after a crash.
Result<void> OpenVersionRepair::execute(const meta::Env& catalog, RepairReport& report) const {
  if (dropped_.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  for (const auto& record : dropped_) {
    VARVE_TRY(catalog::erase_version(txn, record.series, record.number));
    report.problems.push_back("the open version " + record.name);
  }
  return txn.commit();
}

}  // namespace varve::maintain
