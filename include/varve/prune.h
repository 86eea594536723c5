// SPDX-License-Identifier: Apache-2.0
// Retention rules: deciding which versions to keep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// Rules for keeping versions. A version is kept if any rule keeps it. Periods are in the local
/// time zone; weeks begin on Monday (ISO 8601). Rules use Varve's own seal times and the version
/// numbers, never names. "Newest" means the highest number. Periods without a version do not count.
///
/// Two kinds of versions cannot push others out:
/// - A version of the future (sealed after `now`, while the clock was ahead) counts for no rule. It
///   is kept until its seal time has passed.
/// - An empty version (no entry below its root) satisfies a rule only if no version with entries
///   does.
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

  [[nodiscard]] bool any() const;
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

/// Returns kInvalid if the decisions delete a version with entries but keep only empty versions and
/// versions of the future.
[[nodiscard]] Result<void> check_prune(const std::vector<PruneDecision>& decisions);

}  // namespace varve
