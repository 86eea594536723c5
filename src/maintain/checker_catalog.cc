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
        at = cursor.seek_behind(base::be32(series));
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

// Reports open versions that refer to chunks unknown to the catalog.
Result<void> Checker::check_open_losses() {
  VARVE_TRY_ASSIGN(const auto losses, find_open_losses({files_, path_, catalog_, codecs_.keys()},
                                                       helpers_.find_unstored, false));
  for (const auto& loss : losses) {
    damage(path_ + "/staging", describe_open_loss(loss));
    for (const auto& name : loss.files.names) {
      report_.damages.back().affected.push_back(loss.name + "/" + name);
    }
  }
  return {};
}

}  // namespace varve::maintain
