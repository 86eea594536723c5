// SPDX-License-Identifier: Apache-2.0
// Compares the folder with the store, and verifies data during the upload (docs/ORDERING.md O51).
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "catalog/series_catalog.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "remote/replicator.h"

namespace varve::remote {

namespace {

constexpr std::string_view kCatalogIdKey = "catalog_id";  // In the settings.

}  // namespace

// A rebuilt catalog has another identity. Its commits are counted from the start, and the catalog
// may give numbers of files removed by an earlier catalog.
Result<bool> Replicator::is_rebuilt(const meta::Txn& catalog) const {
  if (head_.number == 0) return false;
  const auto* const table = meta::catalog::kTables[meta::catalog::kSettings];
  VARVE_TRY_ASSIGN(const auto known, meta::ReadTxn::begin(copy_));
  VARVE_TRY_ASSIGN(const auto here, meta::find_stored(catalog, table, kCatalogIdKey));
  VARVE_TRY_ASSIGN(const auto there, meta::find_stored(known, table, kCatalogIdKey));
  return here != there;
}

Result<std::vector<std::string>> Replicator::unreplicated() const {
  const auto* const table = meta::catalog::kTables[meta::catalog::kVersions];
  std::vector<std::string> names;
  VARVE_TRY_ASSIGN(const auto here, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto there, meta::ReadTxn::begin(copy_));
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(here));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(here, series.id));
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      const auto key = meta::version_key(series.id, version.number);
      VARVE_TRY_ASSIGN(const auto is, meta::find_stored(here, table, key));
      VARVE_TRY_ASSIGN(const auto known, meta::find_stored(there, table, key));
      if (is != known) names.push_back(series.name + "/" + version.name);
    }
  }
  return names;
}

// After the upload the store may have the only copy, so damage of the disk must not go unnoticed.
// Damaged bytes are uploaded unchanged: a repair must not delay the replication of other versions.
Result<std::optional<std::string>> Replicator::check_extent(const FileContainers& containers,
                                                            io::File& file, const std::string& path,
                                                            std::uint64_t offset,
                                                            std::span<std::byte> bytes) {
  if (!fault_in_extent(containers, offset, bytes, container_keys_.get())) {
    return std::optional<std::string>();
  }
  // Only the memory may have been wrong.
  VARVE_TRY_ASSIGN(const auto got, file.read_at(offset, bytes));
  if (got != bytes.size()) return Error(ErrorCode::kStale, path + " was changed");
  auto fault = fault_in_extent(containers, offset, bytes, container_keys_.get());
  if (!fault) return fault;
  *fault = parts_.root + "/" + path + ": " + *fault;
  base::log(base::LogLevel::kError, *fault + ", before it was uploaded; run `varve repair`");
  if (parts_.notes != nullptr) VARVE_TRY(parts_.notes->add(LocalNote::kDamaged, path));
  return fault;
}

// The head has the changed files as they are now. The upload has noted any remaining damage.
Result<void> Replicator::forget_changes(const std::set<std::string>& changed) {
  if (parts_.notes == nullptr) return {};
  return parts_.notes->remove(LocalNote::kChanged, changed);
}

}  // namespace varve::remote
