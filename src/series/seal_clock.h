// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "catalog/clock_record.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/result.h"

namespace varve::series {

/// Sets the record's seal time; a copy has the original's seal time. Needs the root's attributes.
/// Returns the clock's record for the seal's commit. Sets `warning` to a sentence for the user if
/// the clock contradicts earlier seals.
[[nodiscard]] Result<catalog::ClockRecord> choose_seal_time(const SeriesParts& parts,
                                                            catalog::VersionRecord& record,
                                                            std::string& warning);

/// Returns the lock that prevents a version's deletion, as an error; nullopt without a lock.
/// `force_clock`: accepts the time of a clock after a jump ahead.
[[nodiscard]] Result<std::optional<Error>> lock_of(const SeriesParts& parts, const meta::Txn& txn,
                                                   const catalog::VersionRecord& record,
                                                   bool force_clock);

/// Reads the locks of many versions in one snapshot, and finds the accepted time only once. Not
/// thread-safe. Lifetime: the arguments outlive the object.
class LockWatch {
 public:
  LockWatch(const SeriesParts& parts, const meta::Txn& txn);

  /// Returns whether a lock until `locked_until` prevents deletion (docs/ORDERING.md O27).
  [[nodiscard]] Result<bool> holds(const Timestamp& locked_until);
  /// As lock_of().
  [[nodiscard]] Result<std::optional<Error>> find(const catalog::VersionRecord& record,
                                                  bool force_clock);

 private:
  const meta::Txn& txn_;
  const Timestamp now_;
  std::optional<Timestamp> accepted_;  // See catalog::accepted_time().
};

}  // namespace varve::series
