// SPDX-License-Identifier: Apache-2.0
// Checks whether the records of the catalog agree with each other.
#include <fmt/core.h>

#include <chrono>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/name_table.h"
#include "catalog/pool_records.h"
#include "maintain/checker.h"
#include "maintain/deletion_notes.h"
#include "maintain/manifest_file.h"
#include "maintain/owners.h"
#include "meta/schema.h"
#include "meta/value_check.h"

namespace varve::maintain {

Result<void> Checker::check_values() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  const auto& tables = meta::catalog::kTables;
  for (meta::TableIndex table = 0; table < tables.size(); ++table) {
    VARVE_TRY_ASSIGN(const auto faults, meta::find_value_faults(txn, table));
    if (faults.values == 0) continue;
    damage(path_ + "/catalog", fmt::format("{} values of the table `{}`: {}", faults.values,
                                           tables[table], faults.first));
  }
  return {};
}

// The storage of an encrypted repository can erase a record, or restore an older value of the same
// record. Remaining records then lack their owner, or have numbers not yet given.
Result<void> Checker::check_owners(const std::vector<catalog::SeriesRecord>& all) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  std::set<std::uint32_t> known;
  for (const auto& series : all) {
    const auto number = static_cast<std::uint32_t>(series.id);
    known.insert(number);
    const auto last = catalog::last_version_number(txn, series.id);
    if (last && *last >= series.next_number) {
      damage(path_ + "/catalog",
             fmt::format("the record of series {} is older than its versions", number));
    }
  }
  for (const auto table : {meta::catalog::kVersions, meta::catalog::kVersionChunks}) {
    VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, table));
    for (auto at = cursor.seek(""); at && *at && (*at)->key.size() == 8;) {
      const auto series = base::load_be32((*at)->key);
      const auto version = static_cast<VersionNumber>(base::load_be32((*at)->key.substr(4)));
      const auto record = catalog::find_version(txn, SeriesId{series}, version);
      if (!known.contains(series)) {
        damage(path_ + "/catalog", fmt::format("series {} has versions, but no record", series));
        at = cursor.seek(base::be32(series + 1));
        continue;
      }
      if (record && !*record) {
        damage(path_ + "/catalog", fmt::format("version {} of series {} has chunks, but no record",
                                               static_cast<std::uint32_t>(version), series));
      }
      at = cursor.next();
    }
  }
  known.insert(static_cast<std::uint32_t>(kPoolOwner));
  for (const auto number : known) {
    const auto store = catalog::store_of(SeriesId{number});
    const auto counters = catalog::find_counters(txn, store);
    if (!counters) continue;  // The values were checked.
    const auto least = catalog::least_counters(txn, store);
    if (least.next_container > counters->next_container ||
        least.next_segment > counters->next_segment) {
      damage(path_ + "/catalog",
             fmt::format("the counters of store {} are older than its files", number));
    }
  }
  VARVE_TRY_ASSIGN(const bool complete, catalog::has_all_names(txn));
  if (!complete) {
    damage(path_ + "/catalog", "the numbers of series, versions and names do not fit");
  }
  return {};
}

Result<void> Checker::check_labels(const std::vector<catalog::SeriesRecord>& all) {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto notes, find_damaged_notes(txn));
    for (const auto& note : notes) {
      // Not a fault of the whole catalog, which would be rebuilt.
      damage(path_ + "/catalog/data.mdb",
             "the note of the last deletion in the series " + note.name +
                 " (no version is touched: `varve repair` removes the note)");
    }
  }
  // A writer may be between a commit and the write of the labels, so the check tries several times.
  constexpr int kTriesMax = 20;
  constexpr std::chrono::milliseconds kWait(20);
  std::vector<SeriesId> left;
  for (const auto& series : all) left.push_back(series.id);
  for (int tries = 1;; ++tries) {
    std::vector<SeriesId> differ;
    for (const auto id : left) {
      const auto labels = read_labels(files_, codecs_.frames(), folder_of(id), id);
      if (!labels) continue;  // Another part of the check reports the labels.
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      const auto agree = sealed_labels_agree(txn, id, *labels);
      if (!agree && agree.error().code() == ErrorCode::kNotFound) continue;  // Just removed.
      if (labels->torn || (agree && !*agree)) differ.push_back(id);
    }
    left = std::move(differ);
    if (left.empty() || tries == kTriesMax || options_.stop.stop_requested()) break;
    std::this_thread::sleep_for(kWait);
  }
  const bool is_damage =
      !left.empty() && helpers_.labels_are_complete && helpers_.labels_are_complete();
  for (const auto id : left) {
    auto path = folder_of(id) + "/" + kLabelsName;
    if (is_damage) {
      damage(
          std::move(path),
          "the labels lack changes that the catalog has, so a rebuilt catalog would lack versions "
          "(the catalog is sound: after `varve repair`, the next opening writes them again)");
      continue;
    }
    report_.notes.push_back(
        {std::move(path),
         "they differ from the catalog, as a crash may leave them: the next writer writes them "
         "again"});
  }
  return {};
}

// Checks that the chunks referred to by an open version are stored.
Result<void> Checker::check_staged_chunks(const catalog::VersionRecord& version) {
  const auto staged = store_.staged.find(version.number);
  if (staged == store_.staged.end()) return {};
  const auto& chunks = staged->second;
  auto own = catalog::own_part(chunks).subtract(store_.present);
  auto pool = catalog::pool_part(chunks).subtract(pool_.present);
  if (own.size() + pool.size() == 0) return {};
  // A writer may have stored the chunks since the check of the stores.
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto still, catalog::find_version(txn, version.series, version.number));
  if (!still || still->state != VersionState::kOpen) return {};
  const auto unlocated = [&](StoreId store, const base::IdRuns& ids) -> Result<base::IdRuns> {
    std::vector<base::IdRun> runs;
    VARVE_TRY(catalog::for_each_location_of(txn, store, ids,
                                            [&](const catalog::LocationRecord& at) -> Result<bool> {
                                              runs.push_back({at.first, at.count});
                                              return true;
                                            }));
    return ids.subtract(base::IdRuns::from(std::move(runs)));
  };
  VARVE_TRY_ASSIGN(own, unlocated(catalog::store_of(version.series), own));
  VARVE_TRY_ASSIGN(pool, unlocated(kPoolStore, pool));
  if (own.size() + pool.size() == 0) return {};
  damage(path_ + "/staging", fmt::format("{} chunks of the open version {} are not stored anywhere",
                                         own.size() + pool.size(), version.name));
  return {};
}

}  // namespace varve::maintain
