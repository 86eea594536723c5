// SPDX-License-Identifier: Apache-2.0
#include "maintain/open_version_fault.h"

#include <fmt/core.h>

#include <cstdint>

#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "meta/page_check.h"
#include "meta/schema.h"

namespace varve::maintain {

std::string overlay_directory(const std::string& repository_path,
                              const catalog::VersionRecord& record) {
  return fmt::format("{}/staging/{:08x}-{:08x}/overlay", repository_path,
                     static_cast<std::uint32_t>(record.series),
                     static_cast<std::uint32_t>(record.number));
}

Result<bool> is_staging_lost(io::FileSystem& files, const std::string& repository_path,
                             const meta::Txn& txn, const catalog::VersionRecord& record) {
  if (record.state != VersionState::kOpen || record.unfinished) return false;
  VARVE_TRY_ASSIGN(const bool present, files.exists(overlay_directory(repository_path, record)));
  if (present) return false;
  // A version without chunks of its own may never have had staging.
  VARVE_TRY_ASSIGN(bool stored, catalog::has_pool_record(txn, record.series, record.number));
  VARVE_TRY(catalog::for_each_location(txn, catalog::store_of(record.series),
                                       ChunkId::make(record.number, 0),
                                       [&](const catalog::LocationRecord& at) -> Result<bool> {
                                         stored = stored || at.first.birth() == record.number;
                                         return false;
                                       }));
  return stored;
}

Result<std::optional<std::string>> fault_of_open_version(io::FileSystem& files,
                                                         const std::string& repository_path,
                                                         const meta::Txn& txn,
                                                         const catalog::VersionRecord& record,
                                                         bool locked) {
  std::optional<std::string> fault;
  if (record.state != VersionState::kOpen || record.unfinished) return fault;
  VARVE_TRY_ASSIGN(const bool lost, is_staging_lost(files, repository_path, txn, record));
  if (lost) {
    fault = "its content is lost with its staging folder";
    return fault;
  }
  const auto overlay = overlay_directory(repository_path, record);
  if (const auto present = files.exists(overlay); !present || !*present) return fault;
  // Without the lock, a writer may commit during the check, but hardly during each attempt.
  constexpr int kTriesUnlocked = 3;
  for (int tries = locked ? 1 : kTriesUnlocked; tries > 0; --tries) {
    const auto checked = meta::check_pages(files, overlay, meta::overlay::kTables);
    // A read error may be temporary, so only corruption counts.
    fault.reset();
    if (checked || checked.error().code() != ErrorCode::kCorrupt) break;
    fault = "its content is lost with its overlay, which is damaged (" + checked.error().message() +
            ")";
  }
  return fault;
}

}  // namespace varve::maintain
