// SPDX-License-Identifier: Apache-2.0
// The clock record: the highest time accepted as reached by the repository (docs/ORDERING.md O27).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// Lead of the clock over the mark, in seconds, above which the mark does not follow at once: a
/// day, and two hours for daily backups that start late or by local time.
inline constexpr std::int64_t kClockJumpSeconds = 26 * 60 * 60;

/// Time between a first reading ahead of the mark and a confirming second reading, in seconds.
inline constexpr std::int64_t kClockConfirmSeconds = 22 * 60 * 60;

/// The high-water mark of time. When the clock jumps ahead of the mark, the mark follows only after
/// a later reading confirms the jump. A confirmation accepts the first reading, not the second
/// reading, which may be the jump. A wrong clock corrected before a second reading leaves no trace.
struct ClockRecord {
  /// Highest accepted time, rounded up, in seconds since 1970.
  std::int64_t mark_seconds = 0;
  /// First unconfirmed clock reading ahead of the mark, in seconds since 1970; zero if none.
  std::int64_t ahead_since_seconds = 0;
  bool operator==(const ClockRecord&) const = default;
};

/// The key of the record among the settings.
inline constexpr std::string_view kClockSetting = "clock";

/// Returns the stored record. A catalog of an earlier release has no record: then returns a record
/// with the time of the newest seal that is not after `now`. If all seals are after `now`, the
/// record has the time of the newest seal; without a seal, the time `now`.
/// Errors: kCorrupt on malformed bytes.
[[nodiscard]] Result<ClockRecord> find_clock_record(const meta::Txn& txn, const Timestamp& now);
[[nodiscard]] Result<void> put_clock_record(meta::WriteTxn& txn, const ClockRecord& record);
[[nodiscard]] Result<ClockRecord> decode_clock_record(std::string_view bytes);

/// Returns `record` updated with the clock reading `now`.
[[nodiscard]] ClockRecord observe(ClockRecord record, const Timestamp& now);

/// Stores observe() of the stored record and returns the updated record.
[[nodiscard]] Result<ClockRecord> observe_clock(meta::WriteTxn& txn, const Timestamp& now);

/// Returns the time that the repository accepts as reached at the clock reading `now`: at most
/// `now`, the mark after the reading, and kClockJumpSeconds after `newest_seal`.
[[nodiscard]] Timestamp accepted_time(const ClockRecord& record, const Timestamp& newest_seal,
                                      const Timestamp& now);

/// Returns accepted_time() with the stored record and the newest seal of the repository. Locks
/// until a later time hold.
[[nodiscard]] Result<Timestamp> accepted_time(const meta::Txn& txn, const Timestamp& now);

/// Returns the seal time of a version after the sealed versions of `versions` (in ascending
/// number). The time is `now`, or one nanosecond after the newest version if the clock is behind
/// the newest version. Ignores a version sealed after both `now` and the mark, because the clock
/// was ahead at its seal.
[[nodiscard]] Timestamp seal_time(const std::vector<VersionRecord>& versions,
                                  std::int64_t mark_seconds, const Timestamp& now);

}  // namespace varve::catalog
