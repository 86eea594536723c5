// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/repository_status.h"
#include "cli/store_status_output.h"
#include "control/open_versions.h"
#include "varve/remote_folder.h"

namespace varve::cli {
namespace {

/// The exit code of monitoring plug-ins for an unknown state.
constexpr int kExitUnknown = 3;

struct StatusArguments {
  std::vector<std::string> words;
  std::string max_age;
  std::string max_check_age;
  std::string min_free;
  bool json = false;
};

Result<StatusLimits> parse_limits(const StatusArguments& options) {
  StatusLimits limits;
  if (!options.max_age.empty()) {
    VARVE_TRY_ASSIGN(limits.age_s, parse_duration(options.max_age));
  }
  if (!options.max_check_age.empty()) {
    VARVE_TRY_ASSIGN(limits.check_age_s, parse_duration(options.max_check_age));
  }
  if (!options.min_free.empty()) {
    VARVE_TRY_ASSIGN(limits.free_bytes, parse_bytes(options.min_free));
  }
  return limits;
}

Result<SeriesStatus> look_at_series(Repository& repository, control::OpenVersions& open_versions,
                                    const SeriesInfo& series,
                                    const std::vector<VersionId>& missing) {
  SeriesStatus status;
  status.name = series.name;
  VARVE_TRY_ASSIGN(auto versions, repository.versions(series.id));
  for (VersionInfo& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    ++status.versions;
    status.unreplicated += std::ranges::count_if(missing, [&](const VersionId& id) {
      return id.series == series.id && id.number == version.number;
    });
    const bool is_newest = !status.newest || data_time(*status.newest) <= data_time(version);
    if (is_newest) status.newest = std::move(version);
  }
  VARVE_TRY_ASSIGN(status.open, open_versions.of(series));
  VARVE_TRY_ASSIGN(status.debt, repository.arranging_debt(series.id));
  VARVE_TRY(look_at_losses(repository, series.id, status));
  VARVE_TRY_ASSIGN(status.refused, repository.refused_store(series.id));
  return status;
}

Result<RepositoryStatus> look(const std::vector<std::string>& words, const Instance& instance) {
  VARVE_TRY_ASSIGN(NamedPlaces named, find_places(words, {}));
  add_series_of(instance, named);
  RepositoryStatus status;
  // Before opening the repository: a process can open a catalog only once at a time.
  VARVE_TRY_ASSIGN(const auto folder, repository_at(named.repository, control::Purpose::kLook));
  VARVE_TRY_ASSIGN(status.replication, RemoteFolder(folder, is_trusted(folder)).info());
  VARVE_TRY_ASSIGN(status.staged, RemoteFolder(folder, is_trusted(folder)).staged_data());
  VARVE_TRY_ASSIGN(status.store_usage, RemoteFolder(folder, is_trusted(folder)).usage());
  VARVE_TRY_ASSIGN(const auto missing,
                   RemoteFolder(folder, is_trusted(folder)).unreplicated_versions());
  VARVE_TRY_ASSIGN(status.changes, RemoteFolder(folder, is_trusted(folder)).unreplicated_changes());
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(named.repository));
  VARVE_TRY_ASSIGN(const auto all, find_series(*repository, named.places));
  control::OpenVersions open_versions(*repository);
  for (const SeriesInfo& series : all) {
    VARVE_TRY_ASSIGN(auto one, look_at_series(*repository, open_versions, series, missing));
    status.series.push_back(std::move(one));
  }
  status.checks = repository->earlier_checks();
  VARVE_TRY_ASSIGN(status.has_older_catalog, repository->has_older_catalog());
  VARVE_TRY_ASSIGN(status.lease, repository->store_lease());
  VARVE_TRY_ASSIGN(status.space, repository->space());
  VARVE_TRY_ASSIGN(status.sequence, repository->sequence());
  status.now = base::SystemClock().now();
  return status;
}

std::string open_names(const SeriesStatus& series) {
  std::string text;
  for (const VersionInfo& version : series.open) {
    if (!text.empty()) text += ", ";
    text += printable(version.name);
  }
  return text.empty() ? "-" : text;
}

// Monitoring programs show only the first line, so the first line has the gravest concern.
void print_as_text(const RepositoryStatus& status, const std::vector<Concern>& concerns,
                   Health health) {
  std::string first = fmt::format("{} - ", name_of(health));
  if (concerns.empty()) {
    first += fmt::format("{} series, {} free", status.series.size(),
                         size_text(status.space.available_bytes(), false));
  } else {
    first += concerns.front().text;
  }
  print(first + "\n");
  for (std::size_t i = 1; i < concerns.size(); ++i) {
    print(fmt::format("{} - {}\n", name_of(concerns[i].health), concerns[i].text));
  }
  std::vector<std::vector<std::string>> rows{
      {"SERIES", "VERSIONS", "NEWEST", "AGE", "TO ARRANGE", "OPEN"}};
  for (const SeriesStatus& series : status.series) {
    rows.push_back(
        {printable(series.name), std::to_string(series.versions),
         series.newest ? printable(series.newest->name) : "-",
         series.newest ? age_text(seconds_since(data_time(*series.newest), status.now)) : "-",
         size_text(series.debt.dead_bytes + series.debt.departing_bytes, false),
         open_names(series)});
  }
  if (rows.size() > 1) print("\n" + table(rows, "lrlrrl"));
  if (status.replication) print("\n" + table(store_rows(status), "ll"));
  rows = {{"last checks", checks_text(status.checks, status.now)},
          {"free", fmt::format("{} of {}", size_text(status.space.available_bytes(), false),
                               size_text(status.space.total_bytes(), false))}};
  if (status.sequence) rows.push_back({"sequence number", std::to_string(*status.sequence)});
  print("\n" + table(rows, "ll"));
}

Json series_json(const SeriesStatus& series, const Timestamp& now) {
  Json object{{"versions", series.versions},
              {"dead_bytes", series.debt.dead_bytes},
              {"departing_bytes", series.debt.departing_bytes},
              {"unreplicated", series.unreplicated}};
  put_name(object, "series", series.name);
  if (series.newest) {
    put_name(object, "newest", series.newest->name);
    put_time(object, "sealed_at", series.newest->sealed_at);
    if (series.newest->claimed_at) put_time(object, "claimed_at", *series.newest->claimed_at);
    object["problems"] = series.newest->problems;
    object["age_seconds"] = seconds_since(data_time(*series.newest), now);
  }
  if (series.versions_with_losses != 0) {
    object["lost"] = lost_files_json(series.lost);
    object["lost"]["versions"] = series.versions_with_losses;
    put_name(object["lost"], "version", series.lost_version);
  }
  if (series.refused) {
    object["refused"] = {{"reason", name_of(series.refused->reason)}};
    put_time(object["refused"], "at", series.refused->at);
  }
  auto& open = object["open"] = Json::array();
  for (const VersionInfo& version : series.open) {
    Json one{{"entries", version.entries}};
    put_time(one, "opened_at", version.opened_at);
    put_name(one, "version", version.name);
    open.push_back(std::move(one));
  }
  return object;
}

void print_as_json(const RepositoryStatus& status, const std::vector<Concern>& concerns,
                   Health health) {
  for (const SeriesStatus& series : status.series) {
    print_json("series", series_json(series, status.now));
  }
  for (const EarlierCheck& check : status.checks) {
    Json object{{"depth", name_of(check.depth)}, {"damages", check.damages}};
    put_time(object, "ended_at", {check.ended_at, 0});
    print_json("check", std::move(object));
  }
  if (status.replication) print_store_status_json(status);
  for (const Concern& concern : concerns) {
    print_json("concern", {{"state", name_of(concern.health)}, {"text", concern.text}});
  }
  Json summary{{"state", name_of(health)},
               {"series_count", status.series.size()},
               {"free_bytes", status.space.available_bytes()},
               {"disk_bytes", status.space.total_bytes()}};
  if (status.sequence) summary["sequence"] = *status.sequence;
  print_json("status_summary", std::move(summary));
}

/// Prints a state without figures at the place read by monitoring programs. Returns the exit code
/// of the state.
int print_failure(const StatusArguments& options, const char* state, int code, const Error& error) {
  const auto text = printable(error.message());
  if (options.json) {
    print_json("status_summary", {{"state", state}, {"text", text}});
  } else {
    print(fmt::format("{} - {}\n", state, text));
  }
  return code;
}

int run_status(const StatusArguments& options, const Context& context) {
  const auto limits = parse_limits(options);
  // A wrong command line says nothing about the backups.
  if (!limits) return print_failure(options, "UNKNOWN", kExitUnknown, limits.error());
  const auto status = look(options.words, context.instance);
  if (!status) {
    if (status.error().code() == ErrorCode::kUsage) {
      return print_failure(options, "UNKNOWN", kExitUnknown, status.error());
    }
    // A backup that cannot be read is the worst state.
    return print_failure(options, name_of(Health::kCritical), static_cast<int>(Health::kCritical),
                         status.error());
  }
  const auto concerns = find_concerns(*status, *limits);
  const Health health = concerns.empty() ? Health::kOk : concerns.front().health;
  if (options.json) {
    print_as_json(*status, concerns, health);
  } else {
    print_as_text(*status, concerns, health);
  }
  return static_cast<int>(health);
}

}  // namespace

void add_status_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<StatusArguments>();
  auto command = line.add_command(
      "status", "Say whether backups are fresh and sound; exit code 0 yes, 1 look at it, 2 act");
  command.add_places(options->words, "Series (default: all)");
  command.add_option("--max-age", options->max_age,
                     "Critical if the newest version of a series is older, such as 26h");
  command.add_option("--max-check-age", options->max_check_age,
                     "A warning if the last check of all data is older, such as 35d");
  command.add_option("--min-free", options->min_free,
                     "A warning if the disk has less free space, such as 20G");
  command.add_json_flag(options->json, "the series, checks and concerns, then the summary");
  command.usage_exits_with(kExitUnknown);
  command.run([options, &context] { return run_status(*options, context); });
}

}  // namespace varve::cli
