// SPDX-License-Identifier: Apache-2.0
// The clock record: the highest time that the repository accepts as reached (docs/ORDERING.md O27).
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

/// Lead of the clock over the mark, in seconds, above which the mark does not follow at once.
inline constexpr std::int64_t kClockJumpSeconds = 24 * 60 * 60;

/// The high-water mark of time. When the clock jumps ahead of the mark, the mark follows only after
/// the clock has run on for a day. A wrong clock that is corrected within a day leaves no trace.
struct ClockRecord {
  /// Highest accepted time, rounded up, in seconds since 1970.
  std::int64_t mark_seconds = 0;
  /// Clock reading, in seconds since 1970, when the jump ahead was first seen; zero if none was.
  std::int64_t ahead_since_seconds = 0;
  bool operator==(const ClockRecord&) const = default;
};

/// The key of the record among the settings.
inline constexpr std::string_view kClockSetting = "clock";

/// Returns the stored record. A catalog of an earlier release has none: for it, returns a record
/// with the time of the newest seal that is not after `now`. If all seals are after `now`, the
/// record has the time of the newest seal; if there is no seal, it has `now`.
/// Errors: kCorrupt on malformed bytes.
[[nodiscard]] Result<ClockRecord> find_clock_record(const meta::Txn& txn, const Timestamp& now);
[[nodiscard]] Result<void> put_clock_record(meta::WriteTxn& txn, const ClockRecord& record);
[[nodiscard]] Result<ClockRecord> decode_clock_record(std::string_view bytes);

/// Returns `record` updated with one more clock reading, `now`.
[[nodiscard]] ClockRecord observe(ClockRecord record, const Timestamp& now);

/// Stores observe() of the stored record and returns it.
[[nodiscard]] Result<ClockRecord> observe_clock(meta::WriteTxn& txn, const Timestamp& now);

/// Returns whether the clock is more than a day ahead of the mark or of the newest seal of the
/// repository. A clock that has jumped does not end locks.
[[nodiscard]] Result<bool> has_clock_jumped(const meta::Txn& txn, const Timestamp& now);

/// Returns the time for sealing a version that follows the sealed ones of `versions` (in ascending
/// number). The time is `now`, or one nanosecond after the newest version if the clock is behind
/// that. Ignores a version sealed after both `now` and the mark, because the clock was ahead then.
[[nodiscard]] Timestamp seal_time(const std::vector<VersionRecord>& versions,
                                  std::int64_t mark_seconds, const Timestamp& now);

}  // namespace varve::catalog
