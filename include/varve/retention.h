// SPDX-License-Identifier: Apache-2.0
// Deletes versions: retention rules, the forecast of a deletion, sizes. See
// Repository::delete_versions().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// A version that a deletion does not delete.
struct HeldVersion {
  VersionNumber number{};
  std::string reason;  ///< A sentence with the version's name and advice.
};

/// The effect of deleting a set of versions. The figures come from the deletion's own plan, and are
/// exact unless the series changes first.
struct DeletionForecast {
  std::vector<VersionNumber> versions;  ///< Versions to delete. Ascending, each once.
  std::vector<HeldVersion> held;        ///< Ascending. Empty without DeletionOptions::skip_held.
  /// Decrease in file sizes below series/ when the deletion returns, in bytes. Excludes parity
  /// files, which shrink only once arranging is done.
  std::uint64_t freed_bytes = 0;
  /// Stored bytes that become unused between remaining data, in segments of the active set and in
  /// small volumes. Arranging frees the bytes by rewriting the files (for the active set:
  /// ArrangeSettings::dead_permille).
  std::uint64_t dead_bytes = 0;
  std::uint64_t chunks = 0;       ///< Deleted chunks.
  std::uint64_t chunk_bytes = 0;  ///< Raw size of the deleted chunks.
  /// Raw bytes of chunks used only by the deleted versions and an open version. Freed when the open
  /// version is sealed without the chunks, or dropped.
  std::uint64_t waiting_bytes = 0;
  /// The open version of `waiting_bytes`, as SERIES/VERSION; an example, if several versions of
  /// other series share the bytes in the pool. Empty if `waiting_bytes` is 0.
  std::string waiting_for;
};

/// The sizes of one sealed version, in bytes.
struct VersionUsage {
  VersionNumber number{};
  std::uint64_t logical_bytes = 0;  ///< File data without holes; hard links once.
  /// Raw bytes of the distinct chunks to which the version refers. A part of a run of chunks stored
  /// together counts by the run's average chunk.
  std::uint64_t referenced_bytes = 0;
  /// DeletionForecast::freed_bytes for deleting only the version.
  std::uint64_t unique_bytes = 0;
  /// Raw bytes of the chunks to which another version also refers, estimated likewise.
  std::uint64_t shared_bytes = 0;
  /// True if the window skips the version because the version is too unlike its neighbours (a
  /// partial or an empty backup); see docs/GLOSSARY.md.
  bool side = false;
  Timestamp locked_until;  ///< Zero if the version is not locked.
  /// True while the lock prevents deletion: the lock has not ended, or it has ended only by a clock
  /// that has jumped (docs/ORDERING.md O27).
  bool lock_holds = false;
  /// Name of the open version based on the version, which prevents the deletion; or empty.
  std::string base_of;
};

/// The lock of one sealed version. The lock may have ended.
struct VersionLock {
  VersionNumber number{};
  Timestamp locked_until;
  bool holds = false;  ///< VersionUsage::lock_holds.
};

/// Returns the time of a sealed version's data: the claimed time, unless it is missing or after the
/// seal; otherwise the time of the seal. The result is a part of `version`.
[[nodiscard]] const Timestamp& data_time(const VersionInfo& version);

/// Returns whether the sealed version `a` comes after `b` of the same series: the later
/// data_time(); among equal times, the higher number.
[[nodiscard]] inline bool is_newer(const VersionInfo& a, const VersionInfo& b) {
  if (data_time(a) == data_time(b)) return a.number > b.number;
  return data_time(a) > data_time(b);
}

/// Rules for keeping versions. A version is kept if any rule keeps it. Periods are in the local
/// time zone; weeks begin on Monday (ISO 8601). Rules use data_time(), never names. "Newest" means
/// the latest data_time(); among equal times, the highest number. Periods without a version do not
/// count.
///
/// Two kinds of versions cannot displace regular versions:
/// - A version of the future (sealed after `now`, while the clock was ahead) counts for no rule. It
///   is kept until its seal time has passed.
/// - An empty version (no entry below its root) satisfies a rule only if no version with entries
///   does.
///
/// Of a period, the newest complete version is kept; without a complete version, the newest
/// incomplete version (VersionInfo::problems). The newest complete version of all is kept in any
/// case.
struct KeepRules {
  std::uint32_t last = 0;     ///< Number of newest versions to keep.
  std::uint32_t hourly = 0;   ///< Number of hours to keep the newest version of.
  std::uint32_t daily = 0;    ///< The same for days.
  std::uint32_t weekly = 0;   ///< The same for weeks.
  std::uint32_t monthly = 0;  ///< The same for months.
  std::uint32_t yearly = 0;   ///< The same for years.
  /// Keeps all versions sealed at most `within_seconds` before the newest version with entries. A
  /// machine that was off for a year therefore keeps as many versions as a machine that was on.
  std::optional<std::uint64_t> within_seconds;
  /// True to use data_time(). False to use the seal times and version numbers alone: for a series
  /// whose user may add versions, but must not displace versions by claimed times.
  bool by_claimed = true;

  [[nodiscard]] bool any() const;

  friend bool operator==(const KeepRules&, const KeepRules&) = default;
};

/// A rule of KeepRules with a count.
struct CountRule {
  const char* name;  ///< Name in JSON; after "keep-", the name of the setting and the option.
  std::uint32_t KeepRules::*count;
  /// Format for strftime(3): two times of one period give equal text. Null for a rule that counts
  /// versions.
  const char* period;
};
/// The rules with a count, in the order in which the catalog stores the counts.
inline constexpr std::array<CountRule, 6> kCountRules = {{
    {"last", &KeepRules::last, nullptr},
    // The zone distinguishes the repeated hour when clocks go back in autumn.
    {"hourly", &KeepRules::hourly, "%Y-%m-%d %H:00 %z"},
    {"daily", &KeepRules::daily, "%Y-%m-%d"},
    {"weekly", &KeepRules::weekly, "%G-W%V"},
    {"monthly", &KeepRules::monthly, "%Y-%m"},
    {"yearly", &KeepRules::yearly, "%Y"},
}};

struct PruneDecision {
  VersionInfo version;
  bool keep = false;
  bool future = false;  ///< Sealed after `now`.
  /// The rules that keep the version: "last", "daily 2026-03-01", "within", "locked", "future".
  std::vector<std::string> reasons;
};

/// Decides which of the sealed versions in `versions` to keep. Keeps the versions in `locked`
/// (versions whose lock has not ended) regardless of the rules. Returns one decision for each
/// version, by descending number. `now` is the present time.
[[nodiscard]] std::vector<PruneDecision> decide_prune(const std::vector<VersionInfo>& versions,
                                                      const std::vector<VersionNumber>& locked,
                                                      const KeepRules& rules, const Timestamp& now);

/// Checks that the decisions keep a version with entries, if they delete any version with entries.
/// Errors: kInvalid if only empty versions and versions of the future are kept.
[[nodiscard]] Result<void> check_prune(const std::vector<PruneDecision>& decisions);

}  // namespace varve
