// SPDX-License-Identifier: Apache-2.0
// Rebuilds the clock's record, and reports lost locks.
#include <fmt/format.h>

#include "base/clock.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/sequence_record.h"
#include "maintain/catalog_rebuilder.h"
#include "meta/schema.h"

namespace varve::maintain {

// Stores the highest clock mark. Each series' labels have the mark from the time they were written.
Result<void> CatalogRebuilder::merge_clock(meta::WriteTxn& txn, std::string_view value) {
  const auto record = catalog::decode_clock_record(value);
  if (!record) return {};
  VARVE_TRY_ASSIGN(const auto known, txn.get(meta::catalog::kSettings, catalog::kClockSetting));
  if (known) {
    VARVE_TRY_ASSIGN(const auto other, catalog::decode_clock_record(*known));
    if (other.mark_seconds >= record->mark_seconds) return {};
  }
  return catalog::put_clock_record(txn, {record->mark_seconds, 0});
}

// Stores the highest sequence number: the labels of the last change have it (O43).
Result<void> CatalogRebuilder::merge_sequence(meta::WriteTxn& txn, std::string_view value) {
  const auto sequence = catalog::decode_sequence(value);
  if (!sequence) return {};
  VARVE_TRY_ASSIGN(const auto known, catalog::find_sequence(txn));
  return known >= *sequence ? Result<void>() : catalog::put_sequence(txn, *sequence);
}

// Reports a lost lock. A lock is lost only with its version, or if its record is damaged.
void CatalogRebuilder::report_lost_lock(VersionNumber number, const Version& version) {
  if (!version.retention) return;
  const auto retention = catalog::decode_retention(*version.retention);
  if (!retention) {
    problem(name_of(number) + ": if it was locked, the lock is lost; lock it again");
  } else if (retention->locked_until != Timestamp{}) {
    problem(fmt::format("{}: it was locked until {}; the lock is lost", name_of(number),
                        base::local_time_text(retention->locked_until)));
  }
}

}  // namespace varve::maintain
