// SPDX-License-Identifier: Apache-2.0
// Deletes versions: the rules that decide which ones, the forecast of a deletion, sizes. See
// Repository::delete_versions().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// A version that a deletion leaves in place.
struct HeldVersion {
  VersionNumber number{};
  std::string reason;  ///< A sentence that names the version and what to do.
};

/// The effect of deleting a set of versions. The figures come from the deletion's own plan, so they
/// are exact unless something else changes the series first.
struct DeletionForecast {
  std::vector<VersionNumber> versions;  ///< Versions to delete. Ascending, each once.
  std::vector<HeldVersion> held;        ///< Ascending. Empty without DeletionOptions::skip_held.
  /// Decrease in file sizes below series/ when the deletion returns, in bytes. Excludes parity
  /// files, which shrink only once arranging is done.
  std::uint64_t freed_bytes = 0;
  /// Stored bytes that become unused between data that stays, in segments of the active set and in
  /// small volumes. Arranging frees them when it rewrites these files (for the active set:
  /// ArrangeSettings::dead_permille).
  std::uint64_t dead_bytes = 0;
  std::uint64_t chunks = 0;       ///< Deleted chunks.
  std::uint64_t chunk_bytes = 0;  ///< Raw size of the deleted chunks.
  /// Raw bytes of chunks that only the deleted versions and an open version use. They are freed
  /// when the open version is sealed without them, or dropped.
  std::uint64_t waiting_bytes = 0;
  /// That open version, as SERIES/VERSION; one of them, if several versions of other series hold a
  /// part of these bytes in the pool. Empty if `waiting_bytes` is 0.
  std::string waiting_for;
};

/// The sizes of one sealed version, in bytes.
struct VersionUsage {
  VersionNumber number{};
  std::uint64_t logical_bytes = 0;  ///< File data without holes; hard links once.
  /// Raw bytes of the distinct chunks that it refers to. A part of a run of chunks that were stored
  /// together counts by the run's average chunk.
  std::uint64_t referenced_bytes = 0;
  /// DeletionForecast::freed_bytes for deleting this version alone.
  std::uint64_t unique_bytes = 0;
  /// Raw bytes of the chunks that at least one other version also refers to, estimated likewise.
  std::uint64_t shared_bytes = 0;
  /// True if the window skips this version because it is too unlike its neighbours (a partial or an
  /// empty backup); see docs/GLOSSARY.md.
  bool side = false;
  Timestamp locked_until;  ///< Zero if it is not locked.
  /// True while the lock prevents deletion: the lock has not ended, or it has ended only by a clock
  /// that has jumped (docs/ORDERING.md O27).
  bool lock_holds = false;
  /// Name of the open version that is based on this one and prevents its deletion, or empty.
  std::string base_of;
};

/// The lock of one sealed version, which may have ended.
struct VersionLock {
  VersionNumber number{};
  Timestamp locked_until;
  bool holds = false;  ///< VersionUsage::lock_holds.
};

/// Returns the time of a sealed version's data: the claimed time, if it has one that is not after
/// the seal; otherwise the time of the seal. The result is a part of `version`.
[[nodiscard]] const Timestamp& data_time(const VersionInfo& version);

/// Rules for keeping versions. A version is kept if any rule keeps it. Periods are in the local
/// time zone; weeks begin on Monday (ISO 8601). Rules use data_time(), never names. "Newest" means
/// the latest of these times, of equal ones the highest number. Periods without a version do not
/// count.
///
/// Two kinds of versions cannot push others out:
/// - A version of the future (sealed after `now`, while the clock was ahead) counts for no rule. It
///   is kept until its seal time has passed.
/// - An empty version (no entry below its root) satisfies a rule only if no version with entries
///   does.
///
/// Of a period, the newest complete version is kept, or the newest incomplete one
/// (VersionInfo::problems) if there is no complete one. The newest complete version of all is kept
/// in any case.
struct KeepRules {
  std::uint32_t last = 0;     ///< Number of newest versions to keep.
  std::uint32_t hourly = 0;   ///< Number of hours to keep the newest version of.
  std::uint32_t daily = 0;    ///< The same for days.
  std::uint32_t weekly = 0;   ///< The same for weeks.
  std::uint32_t monthly = 0;  ///< The same for months.
  std::uint32_t yearly = 0;   ///< The same for years.
  /// Keeps all versions sealed at most so many seconds before the newest version with entries. A
  /// machine that was off for a year therefore keeps as many as one that was on.
  std::optional<std::uint64_t> within_seconds;
  /// Uses data_time(). Otherwise, rules use the seal times and the version numbers alone: for a
  /// series of a user who may add versions, but must not push others out by the times that the user
  /// claims.
  bool by_claimed = true;

  [[nodiscard]] bool any() const;

  friend bool operator==(const KeepRules&, const KeepRules&) = default;
};

struct PruneDecision {
  VersionInfo version;
  bool keep = false;
  bool future = false;  ///< Sealed after `now`.
  /// The rules that keep it: "last", "daily 2026-03-01", "within", "locked", "future".
  std::vector<std::string> reasons;
};

/// Decides which of the sealed versions in `versions` to keep. Keeps the versions in `locked`
/// (those whose lock has not ended) regardless of the rules. Returns one decision for each version,
/// by descending number. `now` is the present time.
[[nodiscard]] std::vector<PruneDecision> decide_prune(const std::vector<VersionInfo>& versions,
                                                      const std::vector<VersionNumber>& locked,
                                                      const KeepRules& rules, const Timestamp& now);

/// Checks that the decisions keep a version with entries, if they delete one.
/// Errors: kInvalid if they keep only empty versions and versions of the future.
[[nodiscard]] Result<void> check_prune(const std::vector<PruneDecision>& decisions);

}  // namespace varve
