// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "varve/types.h"

namespace varve::cli {
namespace {

struct MvArguments {
  std::vector<std::string> words;
  bool json = false;
};

/// Returns the new name without the series of a version. The user may repeat the series.
Result<std::string> new_name_of(const VersionPath& place, const std::string& word) {
  if (word.find('/') == std::string::npos) return word;
  const VersionPath target = parse_version_path(word);
  if (place.version.empty() || target.version.empty() || !target.path.empty()) {
    return usage_error("\"" + word + "\" is not a valid name: it contains a slash");
  }
  if (target.series != place.series) {
    return usage_error("a version cannot leave its series; series share no data by their names");
  }
  return target.version;
}

Result<void> move(const MvArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(options.words, {.least = 1,
                                               .most = 1,
                                               .purpose = control::Purpose::kChange,
                                               .order = "REPO SERIES[/VERSION] NAME"}));
  if (named.rest.size() != 1) {
    return usage_error(
        "give one version or series and its new name: the arguments are REPO "
        "SERIES[/VERSION] NAME");
  }
  const VersionPath& place = named.places.front();
  if (!place.path.empty()) {
    return usage_error("a sealed version's files cannot be renamed");
  }
  VARVE_TRY_ASSIGN(const std::string new_name, new_name_of(place, named.rest.front()));
  const VersionPath renamed_path = place.version.empty() ? VersionPath{new_name, {}, {}}
                                                         : VersionPath{place.series, new_name, {}};
  VARVE_TRY(check_new_names(renamed_path, VersionState::kSealed));
  control::RenameRequest request{place.series, new_name};
  if (!place.version.empty()) request.name += "/" + place.version;
  VARVE_TRY_ASSIGN(const auto control, open_control(named.repository));
  const auto renamed = control->rename(request);
  auto closed = control->close();
  VARVE_TRY(renamed);
  if (options.json) {
    Json object = Json::object();
    put_name(object, "series", place.series);
    if (!place.version.empty()) put_name(object, "version", place.version);
    put_name(object, "new_name", new_name);
    print_json("rename", std::move(object));
    return closed;
  }
  note(context, request.name + " is now called " +
                    (place.version.empty() ? new_name : place.series + "/" + new_name));
  return closed;
}

}  // namespace

void add_mv_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<MvArguments>();
  auto command = line.add_command("mv", "Rename a sealed version or a series");
  command.add_places(options->words, "SERIES/VERSION or SERIES, and its new name");
  command.add_json_flag(options->json, "the old and the new name");
  command.run([options, &context] {
    const auto moved = move(*options, context);
    return moved ? kExitOk : fail(moved.error());
  });
}

}  // namespace varve::cli
