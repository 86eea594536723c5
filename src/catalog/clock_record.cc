// SPDX-License-Identifier: Apache-2.0
#include "catalog/clock_record.h"

#include <algorithm>
#include <string>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

std::int64_t rounded_up(const Timestamp& time) {
  return time.seconds + (time.nanoseconds != 0 ? 1 : 0);
}

// Returns whether `seconds` is more than a day after `reference`. Does not overflow, even for a
// forged record.
bool is_a_day_after(std::int64_t seconds, std::int64_t reference) {
  if (seconds <= reference) return false;
  return static_cast<std::uint64_t>(seconds) - static_cast<std::uint64_t>(reference) >
         static_cast<std::uint64_t>(kClockJumpSeconds);
}

// Returns the time of the newest seal of all series. All series share one clock, so a series that
// is rarely backed up relies on the seals of the others.
Result<Timestamp> newest_seal(const meta::Txn& txn, const std::optional<Timestamp>& at_most) {
  Timestamp newest;
  VARVE_TRY_ASSIGN(const auto all, list_series(txn));
  for (const auto& series : all) {
    VARVE_TRY_ASSIGN(const auto versions, list_versions(txn, series.id));
    for (const auto& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      if (at_most && version.sealed_at > *at_most) continue;
      newest = std::max(newest, version.sealed_at);
    }
  }
  return newest;
}

}  // namespace

Result<ClockRecord> decode_clock_record(std::string_view bytes) {
  base::ByteReader r(bytes);
  ClockRecord record;
  record.mark_seconds = static_cast<std::int64_t>(r.u64());
  record.ahead_since_seconds = static_cast<std::int64_t>(r.u64());
  if (!r.done()) return Error(ErrorCode::kCorrupt, "catalog: the record of the clock is damaged");
  return record;
}

Result<ClockRecord> find_clock_record(const meta::Txn& txn, const Timestamp& now) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kClockSetting));
  if (value) return decode_clock_record(*value);
  VARVE_TRY_ASSIGN(auto mark, newest_seal(txn, now));
  if (mark == Timestamp{}) {
    VARVE_TRY_ASSIGN(mark, newest_seal(txn, std::nullopt));
  }
  if (mark == Timestamp{}) mark = now;
  return ClockRecord{rounded_up(mark), 0};
}

Result<void> put_clock_record(meta::WriteTxn& txn, const ClockRecord& record) {
  std::string out;
  base::ByteWriter w(out);
  // The length is fixed: labels hold the record, and a deletion's forecast counts the bytes of the
  // labels.
  w.u64(static_cast<std::uint64_t>(record.mark_seconds));
  w.u64(static_cast<std::uint64_t>(record.ahead_since_seconds));
  return txn.put(meta::catalog::kSettings, kClockSetting, out);
}

ClockRecord observe(ClockRecord record, const Timestamp& now) {
  const std::int64_t seconds = rounded_up(now);
  if (!is_a_day_after(seconds, record.mark_seconds)) {
    record.mark_seconds = std::max(record.mark_seconds, seconds);
    record.ahead_since_seconds = 0;
  } else if (record.ahead_since_seconds == 0 || seconds < record.ahead_since_seconds) {
    record.ahead_since_seconds = seconds;
  } else if (is_a_day_after(seconds, record.ahead_since_seconds)) {
    record.mark_seconds = seconds;
    record.ahead_since_seconds = 0;
  }
  return record;
}

Result<ClockRecord> observe_clock(meta::WriteTxn& txn, const Timestamp& now) {
  VARVE_TRY_ASSIGN(const auto before, find_clock_record(txn, now));
  const auto after = observe(before, now);
  VARVE_TRY(put_clock_record(txn, after));
  return after;
}

Result<bool> has_clock_jumped(const meta::Txn& txn, const Timestamp& now) {
  VARVE_TRY_ASSIGN(const auto record, find_clock_record(txn, now));
  if (is_a_day_after(now.seconds, record.mark_seconds)) return true;
  VARVE_TRY_ASSIGN(const auto newest, newest_seal(txn, std::nullopt));
  return is_a_day_after(now.seconds, newest.seconds);
}

Timestamp seal_time(const std::vector<VersionRecord>& versions, std::int64_t mark_seconds,
                    const Timestamp& now) {
  const Timestamp mark{mark_seconds, 0};
  Timestamp newest;
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    if (version.sealed_at <= std::max(now, mark)) newest = version.sealed_at;
  }
  if (now > newest) return now;
  constexpr std::uint32_t kNanosecondsMax = 999'999'999;
  if (newest.nanoseconds < kNanosecondsMax) return {newest.seconds, newest.nanoseconds + 1};
  return {newest.seconds + 1, 0};
}

}  // namespace varve::catalog
