// SPDX-License-Identifier: Apache-2.0
#include "maintain/pool_checker.h"

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "maintain/owners.h"
#include "maintain/pool_aliases.h"

namespace varve::maintain {

PoolChecker::PoolChecker(const CheckScope& scope, const VerifyChoice& choice,
                         CheckFindings& findings, StoreChecker::OnContainer on_container)
    : scope_(scope),
      findings_(findings),
      store_(scope, choice, findings, kPoolOwner, std::move(on_container)) {}

Result<void> PoolChecker::check() {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    for (const auto& checked : {check_users(txn), check_births(txn), check_rewrite_counts(txn)}) {
      if (!checked) findings_.damage(scope_.catalog_path(), checked.error());
    }
    VARVE_TRY_ASSIGN(const bool present, has_pool(txn));
    if (!present) return {};
  }
  VARVE_TRY(store_.check_records());
  if (auto checked = check_aliases(); !checked) {
    findings_.damage(scope_.stores.folder_of(kPoolOwner), checked.error());
  }
  VARVE_TRY(check_data());
  return findings_.report().finished ? store_.check_parity() : Result<void>();
}

Result<void> PoolChecker::check_data() {
  VARVE_TRY(store_.check_data());
  return store_.add_aliases();
}

Result<void> PoolChecker::check_users(const meta::Txn& txn) {
  std::map<ContainerNumber, std::uint32_t> users;
  VARVE_TRY(catalog::for_each_pool_use(
      txn,
      [&](SeriesId series, VersionNumber number,
          const std::vector<catalog::PoolUse>& uses) -> Result<bool> {
        VARVE_TRY_ASSIGN(const auto version, catalog::find_version(txn, series, number));
        // An open version with chunks in the pool has a record without containers.
        if (!version || (version->state != VersionState::kSealed && !uses.empty())) {
          findings_.damage(
              scope_.catalog_path(),
              fmt::format("version {} of series {} uses containers of the pool, but is not a "
                          "sealed version",
                          static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(series)));
        }
        for (const auto& use : uses) ++users[use.container];
        return true;
      }));
  // Many containers may have a wrong number, so the report names the first container.
  std::uint64_t wrong = 0;
  std::string first;
  const auto compare = [&](ContainerNumber container, std::uint32_t recorded,
                           std::uint32_t counted) {
    if (recorded == counted || wrong++ != 0) return;
    first = fmt::format("container {} of the pool has {} users instead of {}", container, recorded,
                        counted);
  };
  VARVE_TRY(catalog::for_each_pool_users(
      txn, [&](ContainerNumber container, std::uint32_t recorded) -> Result<bool> {
        const auto counted = users.find(container);
        compare(container, recorded, counted == users.end() ? 0 : counted->second);
        if (counted != users.end()) users.erase(counted);
        return true;
      }));
  for (const auto& [container, counted] : users) compare(container, 0, counted);
  if (wrong == 0) return {};
  findings_.damage(scope_.catalog_path(),
                   wrong == 1 ? first : fmt::format("{}, and so have {} more", first, wrong - 1));
  return {};
}

Result<void> PoolChecker::check_rewrite_counts(const meta::Txn& txn) {
  return catalog::for_each_rewrite_counts(
      txn, [&](SeriesId series, VersionNumber number, const RewriteCounts&) -> Result<bool> {
        VARVE_TRY_ASSIGN(const auto version, catalog::find_version(txn, series, number));
        if (version && version->state == VersionState::kSealed) return true;
        findings_.damage(
            scope_.catalog_path(),
            fmt::format("version {} of series {} has counts of rewriting, but is not a sealed "
                        "version",
                        static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(series)));
        return true;
      });
}

// If a birth was given twice, two chunks could get one id.
Result<void> PoolChecker::check_births(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto next, catalog::next_pool_birth(txn));
  VARVE_TRY_ASSIGN(const auto last,
                   catalog::find_last_location_before(txn, kPoolStore, ChunkId{UINT64_MAX}));
  if (!last || last->first.birth() < next) return {};
  findings_.damage(scope_.catalog_path(),
                   "the pool would give a birth twice: its chunks have later ones");
  return {};
}

Result<void> PoolChecker::check_aliases() {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope_.catalog));
    VARVE_TRY(check_alias_records(txn, [this](std::string what) {
      findings_.damage(scope_.catalog_path(), std::move(what));
    }));
  }
  VARVE_TRY_ASSIGN(
      const auto found,
      check_alias_files(scope_.catalog, {&scope_.files, scope_.stores.folder_of(kPoolOwner)},
                        scope_.stores.of(kPoolOwner), scope_.codecs.frames().keys()));
  findings_.report().bytes_read += found.bytes_read;
  for (const auto& fault : found.faults) findings_.damage(fault.where, fault.what);
  if (found.wrong.size() != 0) {
    store_.mark_damaged(found.wrong);
  }
  return {};
}

Result<bool> PoolChecker::check_chunks(const meta::Txn& txn, const catalog::VersionRecord& version,
                                       const base::IdRuns& chunks) {
  const auto shared = catalog::pool_part(chunks);
  VARVE_TRY_ASSIGN(const auto recorded,
                   catalog::find_pool_use(txn, version.series, version.number));
  if (shared.size() == 0 && recorded.empty()) return false;
  const auto of_version = [&version] {
    return fmt::format("version {} of series {}", static_cast<std::uint32_t>(version.number),
                       static_cast<std::uint32_t>(version.series));
  };
  VARVE_TRY_ASSIGN(const auto uses, catalog::pool_use_of(txn, shared));
  if (recorded != uses) {
    findings_.damage(scope_.catalog_path(),
                     "the list of the pool's containers that " + of_version() + " uses is wrong");
  }
  VARVE_TRY_ASSIGN(const auto next, catalog::next_pool_birth(txn));
  if (shared.size() != 0 && shared.runs().back().first.birth() >= next) {
    findings_.damage(scope_.catalog_path(), "the pool would give a birth twice: chunks of " +
                                                of_version() + " have later ones");
  }
  auto missing = shared.subtract(store_.present());
  if (missing.size() == 0) return false;
  VARVE_TRY_ASSIGN(const auto located, catalog::located_ids(txn, missing));
  missing = missing.subtract(located);
  if (missing.size() != 0) {
    store_.damage(
        scope_.stores.folder_of(kPoolOwner),
        fmt::format("{} chunks of {} are not stored anywhere", missing.size(), of_version()),
        missing.runs());
    VARVE_TRY_ASSIGN(const auto stored, catalog::stored_ids(txn, missing));
    findings_.add_lost(kPoolOwner, stored);
  }
  return located.size() != 0;
}

}  // namespace varve::maintain
