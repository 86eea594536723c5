// SPDX-License-Identifier: Apache-2.0
// The settings of a repository for `varve config`: arranging and pruning.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "varve/arrange.h"
#include "varve/object_lock.h"
#include "varve/result.h"
#include "varve/upkeep.h"

namespace varve::cli {

/// The settings for the upkeep of a repository.
struct RepositorySettings {
  ArrangeSettings arrange;
  UpkeepSettings upkeep;
};

/// Changes of the settings, in the order of the words.
struct RepositoryChanges {
  std::vector<std::function<void(RepositorySettings&)>> changes{};
  bool arrange = false;      ///< A change of RepositorySettings::arrange.
  bool upkeep = false;       ///< A change of RepositorySettings::upkeep.
  bool object_lock = false;  ///< A change of the lock of objects; `upkeep` is also set.
  bool keep_rules = false;   ///< A change of anything else of `upkeep`.

  [[nodiscard]] bool any() const { return !changes.empty(); }
  void apply(RepositorySettings& settings) const {
    for (const auto& change : changes) change(settings);
  }
};

/// Returns the names of the settings, separated by commas.
[[nodiscard]] std::string repository_setting_names();

/// Parses a setting, and adds the change. Returns false if there is no setting called `key`.
/// Errors: kUsage for an invalid value.
[[nodiscard]] Result<bool> parse_repository_setting(std::string_view key, std::string_view value,
                                                    RepositoryChanges& changes);

/// Returns the names and values of all settings.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> repository_setting_texts(
    const RepositorySettings& settings);
/// Sets the members of a message `settings` to the settings.
void put_repository_settings(Json& object, const RepositorySettings& settings);

/// Parses "off", "DAYS" or "DAYS,governance". Errors: kUsage.
[[nodiscard]] Result<ObjectLock> parse_object_lock(std::string_view text);
/// Returns the text form that parse_object_lock() parses.
[[nodiscard]] std::string object_lock_text(const ObjectLock& lock);

/// Returns the rules as options of `varve prune`.
[[nodiscard]] std::string rules_text(const KeepRules& rules);

}  // namespace varve::cli
