// SPDX-License-Identifier: Apache-2.0
#include "maintain/stored_data_repair.h"

#include <algorithm>
#include <utility>

#include "catalog/location_table.h"
#include "io/posix_file_system.h"
#include "maintain/folder_search.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"

namespace varve::maintain {

StoredDataRepair::StoredDataRepair(const RepairScope& scope)
    : scope_(scope), outside_(io::make_posix_file_system()) {}

Result<void> StoredDataRepair::scan(const meta::Env& catalog, const Progress& progress) {
  std::vector<SeriesId> owners;
  CheckProgress done;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(owners, owners_in(txn));
    for (const auto owner : owners) {
      VARVE_TRY(
          catalog::for_each_container(txn, catalog::store_of(owner),
                                      [&](const format::ContainerRecord& record) -> Result<bool> {
                                        done.bytes_total += record.header_bytes + record.data_bytes;
                                        return true;
                                      }));
    }
  }
  for (const auto owner : owners) VARVE_TRY(scan_owner(catalog, owner, done, progress));
  return {};
}

Result<void> StoredDataRepair::scan_without_catalog(const Progress& progress) {
  CheckProgress done;
  std::vector<RepairStep> first;
  VARVE_TRY_ASSIGN(const auto owners, owner_folders(scope_.files, scope_.paths));
  for (const auto owner : owners) {
    auto parity = std::make_unique<ParityRepairer>(scope_.codecs, scope_.stores.of(owner),
                                                   catalog::store_of(owner));
    VARVE_TRY(parity->scan_without_catalog([&](std::uint64_t bytes) {
      done.bytes_done += bytes;
      if (progress) progress(done);
    }));
    const auto steps = parity->steps();
    if (steps.empty()) continue;
    first.insert(first.end(), steps.begin(), steps.end());
    parity_repairers_.push_back(std::move(parity));
  }
  scope_.steps.insert(scope_.steps.begin(), first.begin(), first.end());
  return {};
}

Result<void> StoredDataRepair::restore_from_parity(const Progress& progress, RepairReport& report) {
  CheckProgress done;
  for (const auto& repairer : parity_repairers_) {
    VARVE_TRY(repairer->execute(report, [&](std::uint64_t bytes) {
      done.bytes_done += bytes;
      if (progress) progress(done);
    }));
  }
  return {};
}

Result<void> StoredDataRepair::scan_owner(const meta::Env& catalog, SeriesId owner,
                                          CheckProgress& done, const Progress& progress) {
  const auto pass = [&](std::uint64_t bytes) {
    done.bytes_done += bytes;
    if (progress) progress(done);
  };
  auto& store = scope_.stores.of(owner);
  auto repairer = std::make_unique<DataRepairer>(scope_.codecs, catalog, *outside_, store, owner);
  VARVE_TRY(repairer->scan(pass));
  // Parity comes first, because parity restores data in the old place and state. A later plan
  // checks the rest.
  auto parity = std::make_unique<ParityRepairer>(scope_.codecs, store, catalog::store_of(owner));
  VARVE_TRY(parity->scan(repairer->damaged(), pass));
  const bool restores = parity->restores();
  if (!restores) VARVE_TRY(parity->scan_parity());
  auto steps = parity->steps();
  if (!steps.empty()) parity_repairers_.push_back(std::move(parity));
  scope_.steps.insert(scope_.steps.end(), steps.begin(), steps.end());
  if (restores) return {};

  VARVE_TRY(search_content(catalog, owner, *repairer));
  lost_chunks_ += repairer->lost_chunks();
  unrecognizable_chunks_ += repairer->unrecognizable_chunks();
  steps = repairer->steps();
  if (steps.empty()) return {};
  scope_.steps.insert(scope_.steps.end(), steps.begin(), steps.end());
  repairers_.emplace_back(owner, std::move(repairer));
  return {};
}

Result<void> StoredDataRepair::search_content(const meta::Env& catalog, SeriesId owner,
                                              DataRepairer& repairer) {
  VARVE_TRY(repairer.search_containers());
  if (!scope_.options.from.empty() && !repairer.all_found()) {
    VARVE_TRY(search_folder(scope_.options.from, scope_.superblock.parameters(), repairer));
  }
  std::vector<SeriesId> others;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(others, owners_in(txn));
    std::erase(others, owner);
  }
  for (const auto other : others) {
    if (!repairer.all_found())
      VARVE_TRY(repairer.search_containers(scope_.stores.of(other), other));
  }
  return {};
}

Result<void> StoredDataRepair::execute(const meta::Env& catalog, RepairReport& report) {
  for (const auto& [owner, repairer] : repairers_) {
    VARVE_TRY(repairer->execute(report));
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    // The labels of all series have the quarantine of the pool.
    std::vector<SeriesId> labelled{owner};
    if (owner == kPoolOwner) {
      VARVE_TRY_ASSIGN(labelled, owners_in(txn));
      std::erase(labelled, kPoolOwner);
    }
    for (const auto series : labelled) {
      const auto folder = scope_.paths.series(series);
      VARVE_TRY_ASSIGN(const auto removed, removed_versions(txn, scope_.files, folder, series));
      VARVE_TRY_ASSIGN(const auto labels,
                       encode_labels(txn, scope_.codecs.frames(), series, scope_.superblock.text(),
                                     {.removed = &removed}));
      VARVE_TRY(write_labels(scope_.files, folder, labels));
    }
  }
  return {};
}

}  // namespace varve::maintain
