// SPDX-License-Identifier: Apache-2.0
// Which versions a retention rule keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// A version is kept if any rule keeps it. Periods are those of the local time zone; weeks
/// begin on Monday (ISO 8601). Rules go by Varve's own seal time and by the versions' numbers,
/// never by names. "Newest" means the highest number.
///
/// Two kinds of versions cannot push others out:
/// - A version of the future (sealed after `now`, while the clock was ahead) counts for no rule. It
///   is kept for its own sake until its time has come.
/// - An empty version (no entry below its root) satisfies a rule only where no version with
///   entries does.
struct KeepRules {
  std::uint32_t last = 0;     ///< So many newest versions.
  std::uint32_t hourly = 0;   ///< The newest version of each of the last so many hours,
  std::uint32_t daily = 0;    ///< days,
  std::uint32_t weekly = 0;   ///< weeks,
  std::uint32_t monthly = 0;  ///< months
  std::uint32_t yearly = 0;   ///< and years that have one.
  /// All that were sealed so many seconds or less before the newest one with entries: a machine
  /// that was off for a year keeps as much as one that was not.
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

/// Decides on the sealed ones of `versions`. Returns them by descending number. Keeps those of
/// `locked`, whose locks have not ended, whatever the rules say. `now`: the present time.
[[nodiscard]] std::vector<PruneDecision> decide_prune(const std::vector<VersionInfo>& versions,
                                                      const std::vector<VersionNumber>& locked,
                                                      const KeepRules& rules, const Timestamp& now);

/// Returns kInvalid if the decisions delete versions and keep no others than versions of the
/// future and empty ones.
[[nodiscard]] Result<void> check_prune(const std::vector<PruneDecision>& decisions);

}  // namespace varve
