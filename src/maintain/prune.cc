// SPDX-License-Identifier: Apache-2.0
#include "varve/retention.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <string_view>

#include "base/calendar_text.h"

namespace varve {

namespace {

std::string period_of(const Timestamp& time, const char* format) {
  return base::calendar_text(time, ::localtime_r, format).value_or(std::to_string(time.seconds));
}

}  // namespace

const Timestamp& data_time(const VersionInfo& version) {
  const bool counts = version.claimed_at && *version.claimed_at <= version.sealed_at;
  return counts ? *version.claimed_at : version.sealed_at;
}

bool KeepRules::any() const {
  return within_seconds.has_value() ||
         std::ranges::any_of(kCountRules, [&](const CountRule& r) { return this->*r.count != 0; });
}

namespace {

/// Returns the time used by the rules to sort a version into periods.
const Timestamp& time_of(const VersionInfo& version, const KeepRules& rules) {
  return rules.by_claimed ? data_time(version) : version.sealed_at;
}

void keep(PruneDecision& decision, std::string reason) {
  decision.keep = true;
  decision.reasons.push_back(std::move(reason));
}

// Versions subject to the rules, newest first: versions with entries, then empty versions.
struct Candidates {
  std::vector<PruneDecision*> filled;
  std::vector<PruneDecision*> empty;
};

void keep_last(const Candidates& candidates, std::uint32_t count) {
  for (const auto* group : {&candidates.filled, &candidates.empty}) {
    for (auto* decision : *group) {
      if (count == 0) return;
      keep(*decision, "last");
      --count;
    }
  }
}

// Keeps versions by age relative to the newest version. An empty version is the reference only if
// all versions are empty: otherwise, empty versions of today could make every real backup look old.
void keep_within(const Candidates& candidates, const KeepRules& rules, std::uint64_t seconds) {
  const auto& references = candidates.filled.empty() ? candidates.empty : candidates.filled;
  if (references.empty()) return;
  const auto newest = time_of(references.front()->version, rules).seconds;
  for (const auto* group : {&candidates.filled, &candidates.empty}) {
    for (auto* decision : *group) {
      const auto at = time_of(decision->version, rules).seconds;
      const auto age =
          at >= newest ? 0 : static_cast<std::uint64_t>(newest) - static_cast<std::uint64_t>(at);
      if (age <= seconds) keep(*decision, "within");
    }
  }
}

/// Returns whether `version` is to be kept of a period in place of `newer`.
bool is_better(const VersionInfo& version, const VersionInfo& newer) {
  return version.problems == 0 && newer.problems != 0 && version.entries != 0;
}

void keep_period(const Candidates& candidates, const KeepRules& rules, const CountRule& rule) {
  const std::uint32_t count = rules.*rule.count;
  std::map<std::string, PruneDecision*> best;
  for (const auto* group : {&candidates.filled, &candidates.empty}) {
    for (auto* decision : *group) {
      auto current = period_of(time_of(decision->version, rules), rule.period);
      const auto found = best.find(current);
      if (found == best.end()) {
        if (best.size() < count) best.emplace(std::move(current), decision);
      } else if (is_better(decision->version, found->second->version)) {
        found->second = decision;
      }
    }
  }
  for (const auto& [name, decision] : best) keep(*decision, std::string(rule.name) + " " + name);
}

/// Keeps the newest complete version, even after many incomplete versions.
void keep_complete(const Candidates& candidates) {
  const auto complete = std::ranges::find_if(
      candidates.filled, [](const PruneDecision* one) { return one->version.problems == 0; });
  const bool is_covered = complete == candidates.filled.begin() ||
                          complete == candidates.filled.end() || (*complete)->keep;
  if (!is_covered) keep(**complete, "newest complete");
}

}  // namespace

std::vector<PruneDecision> decide_prune(const std::vector<VersionInfo>& versions,
                                        const std::vector<VersionNumber>& locked,
                                        const KeepRules& rules, const Timestamp& now) {
  std::vector<PruneDecision> decisions;
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    const bool future = version.sealed_at > now;
    decisions.push_back({version, false, future, {}});
  }
  // Sort by number, the order of sealing. Seal times depend on the clock. An import may seal older
  // data later, so where versions have claimed times, times come before the numbers.
  std::ranges::sort(decisions, [](const PruneDecision& a, const PruneDecision& b) {
    return a.version.number > b.version.number;
  });
  const bool has_claims = std::ranges::any_of(versions, [&](const VersionInfo& version) {
    return time_of(version, rules) != version.sealed_at;
  });
  if (has_claims) {
    std::ranges::stable_sort(decisions, [&](const PruneDecision& a, const PruneDecision& b) {
      return time_of(a.version, rules) > time_of(b.version, rules);
    });
  }
  Candidates candidates;
  for (auto& decision : decisions) {
    if (decision.future) {
      keep(decision, "future");
    } else if (decision.version.entries != 0) {
      candidates.filled.push_back(&decision);
    } else {
      candidates.empty.push_back(&decision);
    }
  }
  keep_last(candidates, rules.last);
  if (rules.within_seconds) keep_within(candidates, rules, *rules.within_seconds);
  for (const auto& rule : kCountRules) {
    if (rule.period != nullptr) keep_period(candidates, rules, rule);
  }
  if (rules.any()) keep_complete(candidates);
  const std::set<VersionNumber> held(locked.begin(), locked.end());
  for (auto& decision : decisions) {
    if (held.contains(decision.version.number)) keep(decision, "locked");
  }
  return decisions;
}

Result<void> check_prune(const std::vector<PruneDecision>& decisions) {
  const bool any_goes = std::ranges::any_of(decisions, [](const auto& d) { return !d.keep; });
  const bool real_stays = std::ranges::any_of(
      decisions, [](const auto& d) { return d.keep && !d.future && d.version.entries != 0; });
  const bool real_goes = std::ranges::any_of(
      decisions, [](const auto& d) { return !d.keep && d.version.entries != 0; });
  if (!any_goes || real_stays || !real_goes) return {};
  return Error(
      ErrorCode::kInvalid,
      "only versions of the future and empty ones would stay; check the clock, or give --force");
}

}  // namespace varve
