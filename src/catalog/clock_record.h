// SPDX-License-Identifier: Apache-2.0
// The highest time that the repository believes has come (docs/ORDERING.md O32).
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

/// A clock that is further ahead of the mark than this has to prove itself.
inline constexpr std::int64_t kClockJumpSeconds = 24 * 60 * 60;

/// The high-water mark of time. A clock that jumps ahead does not take the mark along until it has
/// gone on for a day: a wrong clock that is put right within a day leaves no trace.
struct ClockRecord {
  /// The highest time that was believed, rounded up, in seconds since 1970.
  std::int64_t mark_seconds = 0;
  /// What a clock that has jumped ahead said when it was first seen; zero if none was.
  std::int64_t ahead_since_seconds = 0;
  bool operator==(const ClockRecord&) const = default;
};

/// The key of the record among the settings.
inline constexpr std::string_view kClockSetting = "clock";

/// Returns the stored record. A catalog of an earlier release has none: then returns one with the
/// time of the newest seal that is not after `now`, or of the newest seal if all are, or `now`.
/// Errors: kCorrupt on malformed bytes.
[[nodiscard]] Result<ClockRecord> find_clock_record(const meta::Txn& txn, const Timestamp& now);
[[nodiscard]] Result<void> put_clock_record(meta::WriteTxn& txn, const ClockRecord& record);
[[nodiscard]] Result<ClockRecord> decode_clock_record(std::string_view bytes);

/// Returns the record after the clock has said `now` once more.
[[nodiscard]] ClockRecord observe(ClockRecord record, const Timestamp& now);

/// Returns observe() of the stored record and stores that, if it differs.
[[nodiscard]] Result<ClockRecord> observe_clock(meta::WriteTxn& txn, const Timestamp& now);

/// Returns whether the clock is more than a day ahead of the mark or of the newest seal of the
/// repository. Then it does not end locks.
[[nodiscard]] Result<bool> has_clock_jumped(const meta::Txn& txn, const Timestamp& now);

/// Returns the time to seal a version with, after the sealed ones of `versions` (in ascending
/// number): the clock's, or one nanosecond more than the newest version's where the clock is behind
/// that. A version sealed after both `now` and the mark is left out: the clock was ahead then.
[[nodiscard]] Timestamp seal_time(const std::vector<VersionRecord>& versions,
                                  std::int64_t mark_seconds, const Timestamp& now);

}  // namespace varve::catalog
