// SPDX-License-Identifier: Apache-2.0
// Prevents a wrong clock from changing the order of seals and from ending locks.
#include "series/seal_clock.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/version_origin.h"

namespace varve::series {

// Sets record.sealed_at. Seal times ascend with the version numbers, even if the clock jumps (O27).
// A copy has the time of its original, and moves no mark.
Result<catalog::ClockRecord> choose_seal_time(const SeriesParts& parts,
                                              catalog::VersionRecord& record,
                                              std::string& warning) {
  const Timestamp now = parts.clock->now();
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts.catalog));
  VARVE_TRY_ASSIGN(const auto before, catalog::find_clock_record(txn, now));
  if (const auto origin = catalog::origin_of(record.number, record.root.xattrs)) {
    record.sealed_at = origin->sealed_at;
    return catalog::observe(before, now);
  }
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, record.series));
  record.sealed_at = catalog::seal_time(versions, before.mark_seconds, now);
  if (record.sealed_at != now) {
    warning = fmt::format(
        "the clock says {}, but the version before {} was sealed at {}; the new seal gets the time "
        "of that seal. Check the clock",
        base::local_time_text(now), record.name, base::local_time_text(record.sealed_at));
  }
  const bool ahead = std::any_of(versions.begin(), versions.end(), [&](const auto& version) {
    return version.state == VersionState::kSealed && version.sealed_at > record.sealed_at;
  });
  if (ahead && warning.empty()) {
    warning = fmt::format(
        "a version before {} was sealed while the clock was ahead, so its time is in the future; "
        "retention rules ignore that version",
        record.name);
  }
  if (!warning.empty()) base::log(base::LogLevel::kWarning, warning);
  return catalog::observe(before, now);
}

LockWatch::LockWatch(const SeriesParts& parts, const meta::Txn& txn)
    : txn_(txn), now_(parts.clock->now()) {}

// A clock jump ahead does not end locks (O27).
Result<bool> LockWatch::holds(const Timestamp& locked_until) {
  if (locked_until == Timestamp{}) return false;
  if (locked_until > now_) return true;
  if (!accepted_) {
    VARVE_TRY_ASSIGN(accepted_, catalog::accepted_time(txn_, now_));
  }
  return locked_until > *accepted_;
}

Result<std::optional<Error>> LockWatch::find(const catalog::VersionRecord& record,
                                             bool force_clock) {
  VARVE_TRY_ASSIGN(const auto retention,
                   catalog::find_retention(txn_, record.series, record.number));
  if (retention.locked_until > now_) {
    return std::optional(Error(ErrorCode::kNotPermitted,
                               fmt::format("{} is locked until {}", record.name,
                                           base::local_time_text(retention.locked_until))));
  }
  if (force_clock) return std::optional<Error>();
  VARVE_TRY_ASSIGN(const bool held, holds(retention.locked_until));
  if (!held) return std::optional<Error>();
  return std::optional(
      Error(ErrorCode::kNotPermitted,
            fmt::format("{} is locked until {}, and the repository accepts no time after {} yet: "
                        "the clock is far ahead of the last seal, or of the readings that later "
                        "readings have confirmed. Seal a version and try again a day later, or "
                        "check the clock and give --force-clock",
                        record.name, base::local_time_text(retention.locked_until),
                        base::local_time_text(*accepted_))));
}

Result<std::optional<Error>> lock_of(const SeriesParts& parts, const meta::Txn& txn,
                                     const catalog::VersionRecord& record, bool force_clock) {
  return LockWatch(parts, txn).find(record, force_clock);
}

}  // namespace varve::series
