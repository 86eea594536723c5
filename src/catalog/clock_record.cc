// SPDX-License-Identifier: Apache-2.0
#include "catalog/clock_record.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

std::int64_t rounded_up(const Timestamp& time) {
  return time.seconds + (time.nanoseconds != 0 ? 1 : 0);
}

// Returns whether `seconds` is more than `distance` after `reference`. Does not overflow, even for
// a forged record.
bool is_after(std::int64_t seconds, std::int64_t reference, std::int64_t distance) {
  if (seconds <= reference) return false;
  return static_cast<std::uint64_t>(seconds) - static_cast<std::uint64_t>(reference) >
         static_cast<std::uint64_t>(distance);
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
  auto& [mark, ahead_since] = record;
  const bool is_confirmed =
      ahead_since != 0 && is_after(seconds, ahead_since, kClockConfirmSeconds);
  if (is_confirmed) mark = std::max(mark, std::exchange(ahead_since, 0));
  if (!is_after(seconds, mark, kClockJumpSeconds)) {
    mark = std::max(mark, seconds);
    ahead_since = 0;
  } else if (ahead_since == 0 || seconds < ahead_since) {
    ahead_since = seconds;
  }
  return record;
}

Result<ClockRecord> observe_clock(meta::WriteTxn& txn, const Timestamp& now) {
  VARVE_TRY_ASSIGN(const auto before, find_clock_record(txn, now));
  const auto after = observe(before, now);
  VARVE_TRY(put_clock_record(txn, after));
  return after;
}

Timestamp accepted_time(const ClockRecord& record, const Timestamp& newest_seal,
                        const Timestamp& now) {
  const auto mark = observe(record, now).mark_seconds;
  const auto bound = is_after(mark, newest_seal.seconds, kClockJumpSeconds)
                         ? newest_seal.seconds + kClockJumpSeconds
                         : mark;
  return std::min(now, Timestamp{bound, 0});
}

Result<Timestamp> accepted_time(const meta::Txn& txn, const Timestamp& now) {
  VARVE_TRY_ASSIGN(const auto record, find_clock_record(txn, now));
  VARVE_TRY_ASSIGN(const auto newest, newest_seal(txn, std::nullopt));
  return accepted_time(record, newest, now);
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
  constexpr std::uint32_t kLastNanosecond = 999'999'999;
  if (newest.nanoseconds < kLastNanosecond) return {newest.seconds, newest.nanoseconds + 1};
  return {newest.seconds + 1, 0};
}

}  // namespace varve::catalog
