// SPDX-License-Identifier: Apache-2.0
// The words KEY=VALUE of `varve config`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/repository_settings_words.h"
#include "varve/options.h"
#include "varve/pool_index.h"
#include "varve/result.h"

namespace varve::cli {

/// Removes the settings from the end of `words`, and returns the settings. A word is a setting if
/// the word has a `=` without a slash before the `=`.
[[nodiscard]] std::vector<std::string> take_setting_words(std::vector<std::string>& words);

/// The settings in the words.
struct SettingChanges {
  SeriesOptions series{};
  // Settings of the repository.
  std::optional<PoolIndexChoice> pool_index{};
  RepositoryChanges repository{};

  [[nodiscard]] bool of_repository() const { return pool_index || repository.any(); }
};

/// Parses words of the form KEY=VALUE.
/// Errors: kUsage for an unknown key or value, and for a repeated key; the message lists the valid
/// keys or values.
[[nodiscard]] Result<SettingChanges> parse_setting_words(const std::vector<std::string>& words);

}  // namespace varve::cli
