// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/series_settings_words.h"

namespace varve::cli {
namespace {

struct ConfigArguments {
  std::vector<std::string> words;
  bool json = false;
};

struct NamedSettings {
  std::string series;  ///< "" for the settings of new series.
  SeriesSettings settings;
  // Unless a series is named:
  std::optional<PoolIndexChoice> pool_index{};
  std::optional<RepositorySettings> repository{};
};

void print_as_json(const NamedSettings& named) {
  Json object{{"placement", placement_name(named.settings.placement)},
              {"rewrite", rewrite_name(named.settings.rewrite)}};
  if (!named.series.empty()) put_name(object, "series", named.series);
  if (named.pool_index) object["pool_index"] = pool_index_text(*named.pool_index);
  if (named.repository) put_repository_settings(object, *named.repository);
  print_json("settings", std::move(object));
}

void print_as_text(const NamedSettings& named) {
  std::vector<std::vector<std::string>> rows{
      {"series", named.series.empty() ? "(new series)" : name_text(named.series)},
      {"placement", std::string(placement_name(named.settings.placement))},
      {"rewrite", std::string(rewrite_name(named.settings.rewrite))}};
  if (named.pool_index) rows.push_back({"pool index", pool_index_text(*named.pool_index)});
  if (named.repository) {
    for (auto& [name, text] : repository_setting_texts(*named.repository)) {
      rows.push_back({name, text});
    }
  }
  print(table(rows, "ll"));
}

void tell_change(const NamedSettings& named, const SettingChanges& changes,
                 const Context& context) {
  if (changes.pool_index) {
    note(context, fmt::format("pool-index={}, from the next mount or command on; it is built from "
                              "the pool's containers when a version first needs it",
                              pool_index_text(*changes.pool_index)));
  }
  if (changes.repository.arrange) {
    note(context, "these settings apply from the next arranging on");
  }
  if (changes.repository.object_lock && named.repository) {
    const auto& lock = named.repository->upkeep.object_lock;
    note(context, lock.on() ? fmt::format("new objects are locked for {} days; the next seals lock "
                                          "the present ones, and extend all locks in time",
                                          lock.days)
                            : std::string("new objects are not locked; the present locks stay "
                                          "until they end"));
  }
  if (changes.repository.keep_rules && named.repository) {
    const std::string rules = rules_text(named.repository->upkeep.keep);
    note(context, "a prune without rules now " +
                      (rules.empty() ? "is refused" : "keeps what these keep: " + rules));
  }
  if (!changes.series.placement && !changes.series.rewrite) return;
  const auto text = fmt::format("placement={} rewrite={}", placement_name(named.settings.placement),
                                rewrite_name(named.settings.rewrite));
  if (named.series.empty()) {
    note(context, "new series get " + text + "; the present series keep their settings");
  } else {
    note(context, fmt::format("{}: {}, for versions opened from now on; the present versions stay "
                              "as they are",
                              named.series, text));
  }
}

/// Changes and reads the settings of the repository.
Result<void> settle_repository(control::RepositoryControl& control, const SettingChanges& changes,
                               NamedSettings& present) {
  VARVE_TRY_ASSIGN(present.pool_index, control.pool_index({changes.pool_index}));
  RepositorySettings settings;
  VARVE_TRY_ASSIGN(settings.arrange, control.arrange_settings(std::nullopt));
  const auto upkeep = control.upkeep({});
  if (!upkeep) {
    // A daemon of an older Varve does not know these settings.
    if (upkeep.error().code() != ErrorCode::kUnsupported || changes.repository.any()) {
      return upkeep.error();
    }
    return {};
  }
  settings.upkeep = *upkeep;
  changes.repository.apply(settings);
  if (changes.repository.arrange) {
    VARVE_TRY_ASSIGN(settings.arrange, as_usage(control.arrange_settings(settings.arrange)));
  }
  if (changes.repository.upkeep) {
    VARVE_TRY_ASSIGN(settings.upkeep, control.upkeep({settings.upkeep}));
  }
  present.repository = settings;
  return {};
}

Result<void> config(ConfigArguments options, const Context& context) {
  const auto words = take_setting_words(options.words);
  control::SeriesSettingsRequest request;
  VARVE_TRY_ASSIGN(const SettingChanges changes, parse_setting_words(words));
  request.changes = changes.series;
  const auto purpose = words.empty() ? control::Purpose::kLook : control::Purpose::kChange;
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(options.words, {.most = 1, .purpose = purpose}));
  if (!named.rest.empty()) {
    return usage_error("\"" + named.rest.front() +
                       "\" is not a setting; write KEY=VALUE behind the series");
  }
  VARVE_TRY_ASSIGN(const auto control,
                   open_control(named.repository, purpose, {},
                                named.places.empty() ? lock_wait() : lock_wait_to_view()));
  if (!named.places.empty()) {
    VARVE_TRY_ASSIGN(Repository* const repository, control->view());
    VARVE_TRY_ASSIGN(const auto found, find_series(*repository, named.places));
    request.series = found.front().name;
  }
  if (changes.of_repository() && !request.series.empty()) {
    return usage_error(
        "a series has only the settings placement and rewrite; the others are settings of the "
        "repository, so do not name a series with them");
  }
  const auto settle = [&]() -> Result<NamedSettings> {
    NamedSettings present{request.series, {}};
    if (request.series.empty()) {
      VARVE_TRY(settle_repository(*control, changes, present));
    }
    VARVE_TRY_ASSIGN(present.settings, control->series_settings(request));
    return present;
  };
  VARVE_TRY_ASSIGN(const NamedSettings present, close_after(*control, settle()));
  if (options.json) {
    print_as_json(present);
  } else if (words.empty()) {
    print_as_text(present);
  } else {
    tell_change(present, changes, context);
  }
  return {};
}

int run_config(const ConfigArguments& options, const Context& context) {
  const auto done = config(options, context);
  return done ? kExitOk : fail(done.error());
}

}  // namespace

void add_config_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<ConfigArguments>();
  auto command = line.add_command(
      "config", "Print or change the settings of a series, or of the repository and new series");
  command.add_places(options->words,
                     "SERIES (default: new series), then KEY=VALUE to change a setting: "
                     "placement=lineage, lineage+pool or pool; rewrite=none, har, cap, cbr, "
                     "har+cap or har+cbr; without SERIES also those of the repository: "
                     "pool-index=exact, stream, zero-chunk or zero-chunk:N; " +
                         repository_setting_names());
  command.add_json_flag(options->json, "the settings");
  command.run([options, &context] { return run_config(*options, context); });
}

}  // namespace varve::cli
