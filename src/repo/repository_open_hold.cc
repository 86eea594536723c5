// SPDX-License-Identifier: Apache-2.0
// Finds the chunks that a deletion may take from an open version: docs/ORDERING.md O15.
#include "base/log.h"
#include "catalog/layout_records.h"
#include "repo/repository_impl.h"
#include "version/open_references.h"

namespace varve::repo {

layout::OpenHold RepositoryImpl::open_hold(SeriesState& memory, SeriesId series,
                                           const base::IdRuns* dying) {
  base::IdRuns
      retired;  // Chunks that this deletion hid from the index, and none that were hidden before.
  const auto scan = [&]() -> Result<layout::OpenHold> {
    std::optional<catalog::VersionRecord> open;
    Ino base_end = 0;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(auto records, catalog::list_versions(txn, series));
      for (auto& record : records) {
        if (record.state == VersionState::kOpen && !record.unfinished) open = std::move(record);
      }
      if (!open) return layout::OpenHold{};
      if (open->base != VersionNumber{}) {
        VARVE_TRY_ASSIGN(const auto base, catalog::find_version(txn, series, open->base));
        if (!base) return Error(ErrorCode::kCorrupt, "the base of an open version is missing", EIO);
        base_end = base->entries + 2;
      }
    }
    if (memory.open) {
      VARVE_TRY_ASSIGN(auto chunks, memory.open->references([&] {
        if (dying != nullptr) retired = memory.index->retire(*dying);
      }));
      return layout::OpenHold{open->number, std::move(chunks)};
    }
    VARVE_TRY(check_staging(*open));
    VARVE_TRY_ASSIGN(auto chunks, version::stored_references(
                                      *files_, staging_directory(series, open->number), base_end));
    return layout::OpenHold{open->number, std::move(chunks)};
  };
  auto hold = scan();
  if (!hold) {
    base::log(base::LogLevel::kWarning,
              "what the open version refers to cannot be told, so nothing that it may refer to is "
              "freed: " +
                  hold.error().message());
    if (memory.index) memory.index->restore(retired);
    return {};
  }
  // Chunks with references stay, and the index may find them again.
  if (memory.index) memory.index->restore(retired.intersect(hold->chunks));
  return *std::move(hold);
}

Result<RepositoryImpl::OpenChunks> RepositoryImpl::open_record_after(
    const meta::Txn& txn, SeriesId series, const layout::DeletionPlan& plan) {
  OpenChunks after;
  VARVE_TRY_ASSIGN(const auto versions, layout::live_versions(txn, series));
  for (const auto& version : versions) {
    if (version.sealed) continue;
    VARVE_TRY_ASSIGN(const auto before, layout::protected_chunks(txn, series, version));
    auto rest = before.subtract(plan.dead);
    if (rest.size() != before.size()) after.emplace(version.number, std::move(rest));
  }
  return after;
}

}  // namespace varve::repo
