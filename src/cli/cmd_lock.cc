// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "control/named_version.h"
#include "control/open_versions.h"

namespace varve::cli {
namespace {

struct LockArguments {
  std::vector<std::string> words;
  std::string until;
  std::string duration;
  bool json = false;
};

Result<Timestamp> end_of_lock(const LockArguments& options) {
  if (options.until.empty() == options.duration.empty()) {
    return usage_error("give the end of the lock in one way: --until 2027-01-01, or --for 90d");
  }
  Timestamp until = base::SystemClock().now();
  if (!options.duration.empty()) {
    VARVE_TRY_ASSIGN(const std::uint64_t seconds, parse_duration(options.duration));
    until.seconds += static_cast<std::int64_t>(seconds);
    return until;
  }
  const Timestamp now = until;
  VARVE_TRY_ASSIGN(until, parse_time(options.until));
  if (until <= now) {
    return usage_error(time_text(until) + " is in the past; give a later time");
  }
  return until;
}

Result<void> lock(const LockArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const Timestamp until, end_of_lock(options));
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(options.words, {.least = 1, .purpose = control::Purpose::kChange}));
  VARVE_TRY_ASSIGN(const auto control, open_control(named.repository, control::Purpose::kChange, {},
                                                    lock_wait_to_view()));
  VARVE_TRY_ASSIGN(Repository* const repository, control->view());
  control::OpenVersions open_versions(*repository);
  std::vector<VersionInfo> versions;
  for (const VersionPath& place : named.places) {
    VARVE_TRY_ASSIGN(VersionInfo version, find_any_version(*repository, open_versions, place));
    if (version.state != VersionState::kSealed) {
      return control::version_is_open(version.series_name + "/" + version.name);
    }
    versions.push_back(std::move(version));
  }
  for (const VersionInfo& version : versions) {
    const std::string name = version.series_name + "/" + version.name;
    auto locked =
        control->lock({.series = version.series_name, .version = version.number, .until = until});
    if (!locked) return std::move(locked).error().with_context(name);
    if (options.json) {
      auto object = version_json(version);
      put_time(object, "locked_until", until);
      print_json("version", std::move(object));
    } else {
      note(context, name + " cannot be deleted before " + time_text(until));
    }
  }
  return control->close();
}

int run_lock(const LockArguments& options, const Context& context) {
  const auto locked = lock(options, context);
  return locked ? kExitOk : fail(locked.error());
}

}  // namespace

void add_lock_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<LockArguments>();
  auto command = line.add_command("lock", "Protect versions from deletion until a time");
  command.add_places(options->words, "SERIES/VERSION, one or more");
  command.add_option(
      "--until", options->until,
      "2027-01-01 or 2027-01-01T18:30, in local time, or in UTC with a Z at the end");
  command.add_option("--for", options->duration,
                     "Length of the lock from now: 12h, 30d, 2w, 6m, 1y");
  command.add_json_flag(options->json, "the versions");
  command.run([options, &context] { return run_lock(*options, context); });
}

}  // namespace varve::cli
