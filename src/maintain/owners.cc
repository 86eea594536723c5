// SPDX-License-Identifier: Apache-2.0
#include "maintain/owners.h"

#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "maintain/manifest_file.h"
#include "meta/schema.h"

namespace varve::maintain {

std::string owner_folder(const store::RepositoryPaths& paths, SeriesId owner) {
  return owner == kPoolOwner ? paths.pool() : paths.series(owner);
}

Result<bool> has_pool(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto births,
                   txn.get(meta::catalog::kSettings, catalog::kPoolBirthSetting));
  if (births) return true;
  bool found = false;
  VARVE_TRY(catalog::for_each_container(txn, kPoolStore,
                                        [&](const format::ContainerRecord&) -> Result<bool> {
                                          found = true;
                                          return false;
                                        }));
  return found;
}

Result<std::vector<SeriesId>> owners_in(const meta::Txn& txn) {
  std::vector<SeriesId> owners;
  VARVE_TRY_ASSIGN(const bool pool, has_pool(txn));
  if (pool) owners.push_back(kPoolOwner);
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
  for (const auto& series : all) owners.push_back(series.id);
  return owners;
}

Result<std::vector<SeriesId>> owner_folders(io::FileSystem& files,
                                            const store::RepositoryPaths& paths) {
  std::vector<SeriesId> owners;
  const auto pool = files.list(paths.pool());
  if (pool) {
    owners.push_back(kPoolOwner);
  } else if (pool.error().code() != ErrorCode::kNotFound &&
             pool.error().code() != ErrorCode::kNotDirectory) {
    return pool.error();
  }
  VARVE_TRY_ASSIGN(const auto folders, series_folders(files, paths.root()));
  owners.insert(owners.end(), folders.begin(), folders.end());
  return owners;
}

}  // namespace varve::maintain
