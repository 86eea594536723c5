// SPDX-License-Identifier: Apache-2.0
// Plans and executes the repair of the data of series and of the pool.
#include <algorithm>
#include <utility>

#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "layout/post_pass.h"
#include "layout/stored_chunks.h"
#include "maintain/folder_search.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"
#include "maintain/repairer.h"
#include "store/repository_paths.h"

namespace varve::maintain {

Result<void> Repairer::scan_data(const Progress& progress) {
  std::vector<SeriesId> owners;
  CheckProgress done;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
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
  for (const auto owner : owners) VARVE_TRY(scan_owner(owner, done, progress));
  return {};
}

Result<void> Repairer::scan_parity(const Progress& progress) {
  CheckProgress done;
  std::vector<RepairStep> first;
  VARVE_TRY_ASSIGN(const auto owners, owner_folders(*files_, store::RepositoryPaths(path_)));
  for (const auto owner : owners) {
    auto parity =
        std::make_unique<ParityRepairer>(*codecs_, store_of(owner), catalog::store_of(owner));
    VARVE_TRY(parity->scan_without_catalog([&](std::uint64_t bytes) {
      done.bytes_done += bytes;
      if (progress) progress(done);
    }));
    const auto steps = parity->steps();
    if (steps.empty()) continue;
    first.insert(first.end(), steps.begin(), steps.end());
    parity_repairers_.push_back(std::move(parity));
  }
  steps_.insert(steps_.begin(), first.begin(), first.end());
  return {};
}

Result<void> Repairer::restore_from_parity(const Progress& progress, RepairReport& report) {
  CheckProgress done;
  for (const auto& repairer : parity_repairers_) {
    VARVE_TRY(repairer->execute(report, [&](std::uint64_t bytes) {
      done.bytes_done += bytes;
      if (progress) progress(done);
    }));
  }
  return {};
}

Result<void> Repairer::scan_aliases() {
  const auto folder = owner_folder(store::RepositoryPaths(path_), kPoolOwner);
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
    VARVE_TRY_ASSIGN(const bool present, has_pool(txn));
    if (!present) return {};
  }
  VARVE_TRY_ASSIGN(const auto found,
                   check_alias_files(*catalog_, {files_.get(), folder}, store_of(kPoolOwner),
                                     codecs_->frames().keys()));
  for (const auto& fault : found.faults) {
    step(RepairStep::Kind::kAliases, fault.where, fault.what);
    aliases_lost_ = true;
  }
  wrong_aliases_ = found.wrong;
  return {};
}

Result<void> Repairer::write_aliases() {
  const auto folder = owner_folder(store::RepositoryPaths(path_), kPoolOwner);
  if (wrong_aliases_.size() != 0) {
    // No reader may get the content of another chunk.
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*catalog_));
    VARVE_TRY(catalog::erase_aliases(txn, wrong_aliases_));
    VARVE_TRY(txn.commit());
  }
  layout::StoredChunks chunks(*catalog_, store_of(kPoolOwner), codecs_->frames(), kPoolStore,
                              nullptr);
  return layout::tidy_alias_files(*catalog_, chunks, {files_.get(), folder}, std::nullopt);
}

store::SegmentStore& Repairer::store_of(SeriesId owner) {
  auto& store = stores_[owner];
  const auto folder = owner_folder(store::RepositoryPaths(path_), owner);
  if (!store) store = store::open_store(helpers_.open_store, *files_, folder);
  return *store;
}

Result<void> Repairer::scan_owner(SeriesId owner, CheckProgress& done, const Progress& progress) {
  const auto pass = [&](std::uint64_t bytes) {
    done.bytes_done += bytes;
    if (progress) progress(done);
  };
  auto& store = store_of(owner);
  auto repairer = std::make_unique<DataRepairer>(*codecs_, *catalog_, *outside_, store, owner);
  VARVE_TRY(repairer->scan(pass));
  // Parity comes first, because parity restores data in the old place and state. A later plan
  // checks the rest.
  auto parity = std::make_unique<ParityRepairer>(*codecs_, store, catalog::store_of(owner));
  VARVE_TRY(parity->scan(repairer->damaged(), pass));
  const bool restores = parity->restores();
  if (!restores) VARVE_TRY(parity->scan_parity());
  auto steps = parity->steps();
  if (!steps.empty()) parity_repairers_.push_back(std::move(parity));
  steps_.insert(steps_.end(), steps.begin(), steps.end());
  if (restores) return {};

  VARVE_TRY(search_content(owner, *repairer));
  lost_.chunks += repairer->lost_chunks();
  lost_.unrecognizable += repairer->unrecognizable_chunks();
  steps = repairer->steps();
  if (steps.empty()) return {};
  steps_.insert(steps_.end(), steps.begin(), steps.end());
  repairers_.emplace_back(owner, std::move(repairer));
  return {};
}

Result<void> Repairer::search_content(SeriesId owner, DataRepairer& repairer) {
  VARVE_TRY(repairer.search_containers());
  if (!options_.from.empty() && !repairer.all_found()) {
    VARVE_TRY(search_folder(options_.from, parameters_, repairer));
  }
  std::vector<SeriesId> others;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
    VARVE_TRY_ASSIGN(others, owners_in(txn));
    std::erase(others, owner);
  }
  for (const auto other : others) {
    if (!repairer.all_found()) VARVE_TRY(repairer.search_containers(store_of(other), other));
  }
  return {};
}

Result<void> Repairer::repair_data(RepairReport& report) {
  for (const auto& [owner, repairer] : repairers_) {
    VARVE_TRY(repairer->execute(report));
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
    // The labels of all series have the quarantine of the pool.
    std::vector<SeriesId> labelled{owner};
    if (owner == kPoolOwner) {
      VARVE_TRY_ASSIGN(labelled, owners_in(txn));
      std::erase(labelled, kPoolOwner);
    }
    for (const auto series : labelled) {
      const auto folder = store::RepositoryPaths(path_).series(series);
      VARVE_TRY_ASSIGN(const auto removed, removed_versions(txn, *files_, folder, series));
      VARVE_TRY_ASSIGN(const auto labels, encode_labels(txn, codecs_->frames(), series, superblock_,
                                                        {.removed = &removed}));
      VARVE_TRY(write_labels(*files_, folder, labels));
    }
  }
  return {};
}

}  // namespace varve::maintain
