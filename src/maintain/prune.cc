// SPDX-License-Identifier: Apache-2.0
#include "varve/prune.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>

namespace varve {

namespace {

struct Period {
  std::string_view name;
  const char* format;  // Of strftime(3): equal for two times of one period.
  std::uint32_t KeepRules::*count;
};

constexpr std::array<Period, 5> kPeriods = {{
    {"hourly", "%Y-%m-%d %H:00 %z", &KeepRules::hourly},  // The zone: clocks go back in autumn.
    {"daily", "%Y-%m-%d", &KeepRules::daily},
    {"weekly", "%G-W%V", &KeepRules::weekly},
    {"monthly", "%Y-%m", &KeepRules::monthly},
    {"yearly", "%Y", &KeepRules::yearly},
}};

std::string period_of(const Timestamp& time, const char* format) {
  const auto seconds = static_cast<std::time_t>(time.seconds);
  std::tm parts{};
  std::array<char, 64> text{};
  if (::localtime_r(&seconds, &parts) == nullptr) return std::to_string(time.seconds);
  const std::size_t length = std::strftime(text.data(), text.size(), format, &parts);
  return {text.data(), length};
}

}  // namespace

bool KeepRules::any() const {
  return last != 0 || within_seconds.has_value() ||
         std::ranges::any_of(kPeriods, [&](const Period& p) { return this->*p.count != 0; });
}

std::vector<PruneDecision> decide_prune(const std::vector<VersionInfo>& versions,
                                        const std::vector<VersionNumber>& locked,
                                        const KeepRules& rules) {
  std::vector<PruneDecision> decisions;
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) decisions.push_back({version, false, {}});
  }
  // By time, and by number where a clock was set back: the newest is what was sealed last.
  std::ranges::sort(decisions, [](const PruneDecision& a, const PruneDecision& b) {
    return std::pair(a.version.sealed_at, a.version.number) >
           std::pair(b.version.sealed_at, b.version.number);
  });
  const auto keep = [](PruneDecision& decision, std::string reason) {
    decision.keep = true;
    decision.reasons.push_back(std::move(reason));
  };
  for (std::size_t i = 0; i < decisions.size() && i < rules.last; ++i) {
    keep(decisions[i], "last");
  }
  if (rules.within_seconds && !decisions.empty()) {
    const auto newest = decisions.front().version.sealed_at.seconds;
    for (auto& decision : decisions) {
      const auto age = static_cast<std::uint64_t>(newest - decision.version.sealed_at.seconds);
      if (age <= *rules.within_seconds) keep(decision, "within");
    }
  }
  for (const auto& period : kPeriods) {
    std::uint32_t left = rules.*period.count;
    std::string previous;
    for (auto& decision : decisions) {
      if (left == 0) break;
      auto current = period_of(decision.version.sealed_at, period.format);
      if (current == previous) continue;
      keep(decision, std::string(period.name) + " " + current);
      previous = std::move(current);
      --left;
    }
  }
  for (auto& decision : decisions) {
    const bool is_locked = std::ranges::find(locked, decision.version.number) != locked.end();
    if (is_locked) keep(decision, "locked");
  }
  return decisions;
}

}  // namespace varve
