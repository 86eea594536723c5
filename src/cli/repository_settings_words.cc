// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_settings_words.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "cli/arrange_policy.h"
#include "cli/command.h"
#include "cli/quantity.h"

namespace varve::cli {
namespace {

std::string setting_of(const CountRule& rule) { return std::string("keep-") + rule.name; }

using Number = std::uint32_t ArrangeSettings::*;
struct NumberSetting {
  const char* name;
  Number number;
  std::uint32_t least;
  std::uint32_t most;
};
constexpr std::array<NumberSetting, 4> kNumbers = {
    {{"batch", &ArrangeSettings::batch, 1, 1'000'000},
     {"fan", &ArrangeSettings::fan, 2, 1'000'000},
     {"window", &ArrangeSettings::window, 1, 1'000'000},
     {"parity", &ArrangeSettings::parity_percent, 0, kParityPercentMax}}};

constexpr std::uint64_t kSecondsOfHour = 3600;
constexpr std::uint64_t kSecondsOfDay = 24 * kSecondsOfHour;

Result<std::uint32_t> parse_number(std::string_view key, std::string_view value,
                                   std::uint32_t least, std::uint32_t most) {
  std::uint32_t number = 0;
  const char* const last = value.data() + value.size();
  const auto [end, failure] = std::from_chars(value.data(), last, number);
  if (failure != std::errc{} || end != last || number < least || number > most) {
    return usage_error(
        fmt::format("{}={}: give a whole number from {} to {}", key, value, least, most));
  }
  return number;
}

// Parses a percentage with at most one decimal. Returns thousandths.
Result<std::uint32_t> parse_dead(std::string_view value) {
  const std::size_t point = value.find('.');
  const auto whole = parse_number("dead", value.substr(0, point), 0, 100);
  const auto tenth = point == std::string_view::npos
                         ? Result<std::uint32_t>(0)
                         : parse_number("dead", value.substr(point + 1), 0, 9);
  if (whole && tenth && *whole * 10 + *tenth >= 10 && *whole * 10 + *tenth <= 1000) {
    return *whole * 10 + *tenth;
  }
  return usage_error(
      fmt::format("dead={}: give a percentage from 1 to 100, with at most one decimal", value));
}

Result<std::uint32_t> parse_delta(std::string_view value) {
  if (value == "on" || value == "1") return 1U;
  if (value == "off" || value == "0") return 0U;
  return usage_error(fmt::format("delta={}: choose on or off", value));
}

/// Returns the duration in a form for parse_duration(): in days, or in hours for a part of a day.
std::string duration_text(std::uint64_t seconds) {
  return seconds % kSecondsOfDay == 0 ? fmt::format("{}d", seconds / kSecondsOfDay)
                                      : fmt::format("{}h", seconds / kSecondsOfHour);
}

std::string rate_text(const std::optional<std::uint64_t>& rate) {
  if (!rate) return "default";
  for (const auto& [shift, unit] : {std::pair{30, 'G'}, std::pair{20, 'M'}, std::pair{10, 'K'}}) {
    if (*rate != 0 && *rate % (std::uint64_t{1} << shift) == 0) {
      return fmt::format("{}{}", *rate >> shift, unit);
    }
  }
  return std::to_string(*rate);
}

template <typename Change>
Result<bool> add(RepositoryChanges& changes, bool RepositoryChanges::*part, Change change) {
  changes.changes.push_back(std::move(change));
  changes.*part = true;
  if (part != &RepositoryChanges::arrange) changes.upkeep = true;
  return true;
}

Result<bool> parse_upkeep(std::string_view key, std::string_view value,
                          RepositoryChanges& changes) {
  for (const auto& rule : kCountRules) {
    if (key != setting_of(rule)) continue;
    VARVE_TRY_ASSIGN(const auto number, parse_number(key, value, 0, 1'000'000));
    return add(changes, &RepositoryChanges::keep_rules,
               [count = rule.count, number](auto& all) { all.upkeep.keep.*count = number; });
  }
  if (key == "keep-within") {
    std::optional<std::uint64_t> within;
    if (value != "none") {
      VARVE_TRY_ASSIGN(within, parse_duration(value));
    }
    return add(changes, &RepositoryChanges::keep_rules,
               [within](auto& all) { all.upkeep.keep.within_seconds = within; });
  }
  if (key == "keep-by") {
    if (value != "sealed" && value != "claimed") {
      return usage_error(fmt::format("keep-by={}: choose sealed or claimed", value));
    }
    return add(changes, &RepositoryChanges::keep_rules,
               [claimed = value == "claimed"](auto& all) { all.upkeep.keep.by_claimed = claimed; });
  }
  if (key == "guard") {
    if (value != "on" && value != "off") {
      return usage_error(fmt::format("guard={}: choose on or off", value));
    }
    return add(changes, &RepositoryChanges::upkeep,
               [on = value == "on"](auto& all) { all.upkeep.guards_sources = on; });
  }
  if (key == "object-lock") {
    VARVE_TRY_ASSIGN(const auto lock, parse_object_lock(value));
    return add(changes, &RepositoryChanges::object_lock,
               [lock](auto& all) { all.upkeep.object_lock = lock; });
  }
  if (key == "arrange-rate") {
    std::optional<std::uint64_t> rate;
    if (value != "default") {
      VARVE_TRY_ASSIGN(rate, parse_bytes(value));
    }
    return add(changes, &RepositoryChanges::keep_rules,
               [rate](auto& all) { all.upkeep.arrange_bytes_per_second = rate; });
  }
  return false;
}

}  // namespace

std::string repository_setting_names() {
  std::string names = "policy, batch, dead, fan, window, parity, delta, arrange-rate, ";
  for (const auto& rule : kCountRules) names += setting_of(rule) + ", ";
  return names + "keep-within, keep-by, guard, object-lock";
}

Result<ObjectLock> parse_object_lock(std::string_view text) {
  if (text == "off") return ObjectLock();
  const auto comma = text.find(',');
  const auto mode = comma == std::string_view::npos ? "compliance" : text.substr(comma + 1);
  const auto days = parse_number("object-lock", text.substr(0, comma), 1, kLockDaysMax);
  if (days && mode == "compliance") return ObjectLock{*days, LockMode::kCompliance};
  if (days && mode == "governance") return ObjectLock{*days, LockMode::kGovernance};
  return usage_error(fmt::format(
      "object-lock={}: give a number of days from 1 to {}, with \",governance\" behind it if some "
      "credentials may end locks early; or off",
      text, kLockDaysMax));
}

std::string object_lock_text(const ObjectLock& lock) {
  if (!lock.on()) return "off";
  return fmt::format("{}{}", lock.days, lock.mode == LockMode::kGovernance ? ",governance" : "");
}

Result<bool> parse_repository_setting(std::string_view key, std::string_view value,
                                      RepositoryChanges& changes) {
  if (key == "policy") {
    VARVE_TRY_ASSIGN(const auto policy, parse_policy(value));
    return add(changes, &RepositoryChanges::arrange,
               [policy](auto& all) { all.arrange.policy = policy; });
  }
  if (key == "dead") {
    VARVE_TRY_ASSIGN(const auto permille, parse_dead(value));
    return add(changes, &RepositoryChanges::arrange,
               [permille](auto& all) { all.arrange.dead_permille = permille; });
  }
  if (key == "delta") {
    VARVE_TRY_ASSIGN(const auto delta, parse_delta(value));
    return add(changes, &RepositoryChanges::arrange,
               [delta](auto& all) { all.arrange.delta = delta; });
  }
  for (const NumberSetting& setting : kNumbers) {
    if (key != setting.name) continue;
    VARVE_TRY_ASSIGN(const auto number, parse_number(key, value, setting.least, setting.most));
    return add(changes, &RepositoryChanges::arrange,
               [member = setting.number, number](auto& all) { all.arrange.*member = number; });
  }
  return parse_upkeep(key, value, changes);
}

std::vector<std::pair<std::string, std::string>> repository_setting_texts(
    const RepositorySettings& settings) {
  const ArrangeSettings& arrange = settings.arrange;
  const KeepRules& keep = settings.upkeep.keep;
  const std::string dead =
      fmt::format("{}", arrange.dead_permille / 10) +
      (arrange.dead_permille % 10 == 0 ? std::string()
                                       : fmt::format(".{}", arrange.dead_permille % 10));
  std::vector<std::pair<std::string, std::string>> texts{
      {"policy", std::string(name_of(arrange.policy))}, {"dead", dead}};
  for (const NumberSetting& setting : kNumbers) {
    texts.emplace_back(setting.name, std::to_string(arrange.*setting.number));
  }
  texts.emplace_back("delta", arrange.delta != 0 ? "on" : "off");
  texts.emplace_back("arrange-rate", rate_text(settings.upkeep.arrange_bytes_per_second));
  for (const auto& rule : kCountRules) {
    texts.emplace_back(setting_of(rule), std::to_string(keep.*rule.count));
  }
  texts.emplace_back("keep-within",
                     keep.within_seconds ? duration_text(*keep.within_seconds) : "none");
  texts.emplace_back("keep-by", keep.by_claimed ? "claimed" : "sealed");
  texts.emplace_back("guard", settings.upkeep.guards_sources ? "on" : "off");
  texts.emplace_back("object-lock", object_lock_text(settings.upkeep.object_lock));
  return texts;
}

void put_repository_settings(Json& object, const RepositorySettings& settings) {
  const ArrangeSettings& arrange = settings.arrange;
  const KeepRules& keep = settings.upkeep.keep;
  object["policy"] = name_of(arrange.policy);
  object["dead_percent"] = arrange.dead_permille / 10.0;
  object["batch"] = arrange.batch;
  object["fan"] = arrange.fan;
  object["window"] = arrange.window;
  object["parity_percent"] = arrange.parity_percent;
  object["delta"] = arrange.delta;
  if (settings.upkeep.arrange_bytes_per_second) {
    object["arrange_rate_bytes"] = *settings.upkeep.arrange_bytes_per_second;
  }
  for (const auto& rule : kCountRules) object[std::string("keep_") + rule.name] = keep.*rule.count;
  if (keep.within_seconds) object["keep_within_seconds"] = *keep.within_seconds;
  object["keep_by"] = keep.by_claimed ? "claimed" : "sealed";
  object["guard"] = settings.upkeep.guards_sources ? "on" : "off";
  if (settings.upkeep.object_lock.on()) {
    object["object_lock_days"] = settings.upkeep.object_lock.days;
    object["object_lock_mode"] =
        settings.upkeep.object_lock.mode == LockMode::kGovernance ? "governance" : "compliance";
  }
}

std::string rules_text(const KeepRules& rules) {
  std::string text;
  for (const auto& rule : kCountRules) {
    if (rules.*rule.count == 0) continue;
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", setting_of(rule), rules.*rule.count);
  }
  if (rules.within_seconds) {
    text += fmt::format("{}--keep-within {}", text.empty() ? "" : " ",
                        duration_text(*rules.within_seconds));
  }
  if (!rules.by_claimed && !text.empty()) text += " --by sealed";
  return text;
}

}  // namespace varve::cli
