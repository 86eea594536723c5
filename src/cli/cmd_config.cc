// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
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
};

void print_as_json(const NamedSettings& named) {
  Json object{{"placement", placement_name(named.settings.placement)},
              {"rewrite", rewrite_name(named.settings.rewrite)}};
  if (!named.series.empty()) put_name(object, "series", named.series);
  print_json(object);
}

void print_as_text(const NamedSettings& named) {
  print(table({{"series", named.series.empty() ? "(new series)" : name_text(named.series)},
               {"placement", std::string(placement_name(named.settings.placement))},
               {"rewrite", std::string(rewrite_name(named.settings.rewrite))}},
              "ll"));
}

void tell_change(const NamedSettings& named, const Context& context) {
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

Result<void> config(ConfigArguments options, const Context& context) {
  const auto words = take_setting_words(options.words);
  control::SeriesSettingsRequest request;
  VARVE_TRY_ASSIGN(request.changes, parse_series_settings(words));
  const auto purpose = words.empty() ? control::Purpose::kLook : control::Purpose::kChange;
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(options.words, {.most = 1, .purpose = purpose}));
  if (!named.rest.empty()) {
    return Error(ErrorCode::kInvalid, "\"" + named.rest.front() +
                                          "\" is not a setting; write KEY=VALUE behind the series");
  }
  VARVE_TRY_ASSIGN(const auto control, open_control(named.repository, purpose));
  if (!named.places.empty()) {
    VARVE_TRY_ASSIGN(Repository* const repository, control->view());
    VARVE_TRY_ASSIGN(const auto found, find_series(*repository, named.places));
    request.series = found.front().name;
  }
  VARVE_TRY_ASSIGN(const SeriesSettings settings,
                   close_after(*control, control->series_settings(request)));
  const NamedSettings present{request.series, settings};
  if (options.json) {
    print_as_json(present);
  } else if (words.empty()) {
    print_as_text(present);
  } else {
    tell_change(present, context);
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
      "config", "Print or change the settings of a series, or those that new series get");
  command.add_places(options->words,
                     "SERIES (default: new series), then KEY=VALUE to change a setting: "
                     "placement=lineage, lineage+pool or pool; rewrite=none, har, cap, cbr, "
                     "har+cap or har+cbr");
  command.add_json_flag(options->json, "the settings");
  command.run([options, &context] { return run_config(*options, context); });
}

}  // namespace varve::cli
