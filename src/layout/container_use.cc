// SPDX-License-Identifier: Apache-2.0
#include "layout/container_use.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"

namespace varve::layout {

namespace {

Error wrong_users(const std::string& what) {
  return {ErrorCode::kCorrupt, "pool: " + what + "; nothing was moved; run `varve repair`"};
}

}  // namespace

Result<ContainerUse> find_use(const meta::Txn& txn, const std::set<ContainerNumber>& containers,
                              VersionNumber birth, const base::IdRuns& beside) {
  ContainerUse use;
  std::vector<catalog::LocationRecord> places;
  std::vector<base::IdRun> runs;
  VARVE_TRY(catalog::for_each_location(txn, kPoolStore, ChunkId::make(birth, 0),
                                       [&](const catalog::LocationRecord& at) -> Result<bool> {
                                         if (at.first.birth() != birth) return false;
                                         if (!containers.contains(at.container)) return true;
                                         places.push_back(at);
                                         runs.push_back({at.first, at.count});
                                         return true;
                                       }));
  use.chunks = base::IdRuns::from(std::move(runs));
  std::map<ContainerNumber, std::uint32_t> users;
  std::vector<PoolOwner> owners;
  VARVE_TRY(
      catalog::for_each_pool_use(txn,
                                 [&](SeriesId series, VersionNumber version,
                                     const std::vector<catalog::PoolUse>& uses) -> Result<bool> {
                                   bool any = false;
                                   for (const auto& one : uses) {
                                     if (!containers.contains(one.container)) continue;
                                     ++users[one.container];
                                     any = true;
                                   }
                                   if (any) owners.push_back({series, version});
                                   return true;
                                 }));
  std::map<ContainerNumber, std::uint64_t> located;
  for (const auto& at : places) located[at.container] += at.raw_bytes;
  for (const auto container : containers) {
    VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn, kPoolStore, container));
    if (record && record->live_bytes != located[container]) {
      return wrong_users(fmt::format("container {} has chunks of several births", container));
    }
    VARVE_TRY_ASSIGN(const auto recorded, catalog::find_pool_users(txn, container));
    if (recorded != users[container]) {
      return wrong_users(fmt::format("container {} has {} users and {} versions that use it",
                                     container, recorded, users[container]));
    }
  }
  for (const auto& owner : owners) {
    VARVE_TRY_ASSIGN(const auto named, catalog::version_chunks(txn, owner.series, owner.version));
    VARVE_TRY_ASSIGN(const auto all, catalog::stored_ids(txn, named));
    auto its = use.chunks.intersect(all);
    if (beside.size() != 0) use.beside.emplace(owner, beside.intersect(all));
    if (its.size() == 0) return wrong_users("a version does not use a container that it counts");
    use.live = use.live.unite(its);
    use.of.emplace(owner, std::move(its));
  }
  for (const auto& at : places)
    use.live_bytes[at.container] += catalog::estimate_part(at, use.live);
  return use;
}

Result<base::IdRuns> chunks_in(const meta::Txn& txn, const std::set<ContainerNumber>& containers,
                               const std::set<VersionNumber>& births) {
  std::vector<base::IdRun> runs;
  for (const auto birth : births) {
    VARVE_TRY(catalog::for_each_location(txn, kPoolStore, ChunkId::make(birth, 0),
                                         [&](const catalog::LocationRecord& at) -> Result<bool> {
                                           if (at.first.birth() != birth) return false;
                                           if (containers.contains(at.container))
                                             runs.push_back({at.first, at.count});
                                           return true;
                                         }));
  }
  return base::IdRuns::from(std::move(runs));
}

}  // namespace varve::layout
