// SPDX-License-Identifier: Apache-2.0
#include "cli/series_settings_words.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "cli/command.h"

namespace varve::cli {
namespace {

bool is_setting(const std::string& word) {
  const auto equals = word.find('=');
  return equals != std::string::npos && word.find('/') >= equals;
}

Error twice(std::string_view key) {
  return usage_error("\"" + std::string(key) + "\" is given twice");
}

}  // namespace

std::vector<std::string> take_setting_words(std::vector<std::string>& words) {
  auto first = words.end();
  while (first != words.begin() && is_setting(*(first - 1))) --first;
  std::vector<std::string> settings(std::make_move_iterator(first),
                                    std::make_move_iterator(words.end()));
  words.erase(first, words.end());
  return settings;
}

Result<SettingChanges> parse_setting_words(const std::vector<std::string>& words) {
  SettingChanges changes;
  auto& settings = changes.series;
  std::set<std::string_view> seen;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    const std::string_view key = std::string_view(word).substr(0, equals);
    const std::string_view value = std::string_view(word).substr(equals + 1);
    if (!seen.insert(key).second) return twice(key);
    if (key == "placement") {
      VARVE_TRY_ASSIGN(settings.placement, as_usage(parse_placement(value)));
    } else if (key == "rewrite") {
      VARVE_TRY_ASSIGN(settings.rewrite, as_usage(parse_rewrite(value)));
    } else if (key == "pool-index") {
      VARVE_TRY_ASSIGN(changes.pool_index, as_usage(parse_pool_index(value)));
    } else {
      VARVE_TRY_ASSIGN(const bool known, parse_repository_setting(key, value, changes.repository));
      if (known) continue;
      return usage_error("unknown setting \"" + std::string(key) +
                         "\"; the settings are placement and rewrite, and of a repository also "
                         "pool-index, " +
                         repository_setting_names());
    }
  }
  return changes;
}

}  // namespace varve::cli
