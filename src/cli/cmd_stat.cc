// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "control/open_versions.h"

namespace varve::cli {
namespace {

struct StatArguments {
  std::vector<std::string> words;
  bool json = false;
  bool exact = false;
};

struct StatReport {
  VersionInfo version;
  std::optional<VersionUsage> usage;  ///< Set for a sealed version.
  bool newest = false;                ///< True for the target of `latest`.
};

Result<StatReport> look(const StatArguments& options) {
  VARVE_TRY_ASSIGN(const NamedPlaces named, find_places(options.words, {.least = 1, .most = 1}));
  if (!named.rest.empty()) return usage_error("there are too many arguments; see --help");
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(named.repository));
  StatReport report;
  control::OpenVersions open_versions(*repository);
  VARVE_TRY_ASSIGN(report.version,
                   find_any_version(*repository, open_versions, named.places.front()));
  const SeriesId series = report.version.series;
  if (report.version.state == VersionState::kSealed) {
    VARVE_TRY_ASSIGN(report.usage, repository->version_usage(series, report.version.number));
  }
  const auto latest = repository->find_version(series, "latest");
  report.newest = latest && latest->number == report.version.number;
  return report;
}

bool is_locked(const VersionUsage& usage) { return usage.locked_until > base::SystemClock().now(); }

void print_as_json(const StatReport& report) {
  auto object = version_json(report.version);
  object["new_bytes"] = report.version.unique_bytes;
  object["latest"] = report.newest;
  if (report.usage) {
    object["referenced_bytes"] = report.usage->referenced_bytes;
    object["unique_bytes"] = report.usage->unique_bytes;
    object["shared_bytes"] = report.usage->shared_bytes;
    object["side"] = report.usage->side;
    object["locked"] = is_locked(*report.usage);
    if (report.usage->locked_until != Timestamp{}) {
      put_time(object, "locked_until", report.usage->locked_until);
    }
    if (!report.usage->base_of.empty()) put_name(object, "base_of", report.usage->base_of);
  }
  print_json("version", std::move(object));
}

std::string origin_text(const VersionOrigin& origin) {
  return fmt::format("version {} of series {} in repository {}, sealed {}",
                     static_cast<std::uint32_t>(origin.number),
                     static_cast<std::uint32_t>(origin.series), origin.repository,
                     time_text(origin.sealed_at));
}

void print_as_text(const StatReport& report, bool exact) {
  const VersionInfo& version = report.version;
  const auto size = [exact](std::uint64_t bytes) { return exact_size_text(bytes, exact); };
  const bool sealed = version.state == VersionState::kSealed;
  std::vector<std::vector<std::string>> rows{
      {"version", name_text(version.series_name + "/" + version.name)},
      {"number", std::to_string(static_cast<std::uint32_t>(version.number))},
      {"state", sealed ? report.newest ? "sealed, latest" : "sealed" : "open"},
      {"opened", time_text(version.opened_at)}};
  if (!sealed) {
    rows.push_back({"entries", std::to_string(version.entries)});
    rows.push_back({"stored so far", size(version.stored_bytes)});
  }
  if (sealed) {
    rows.push_back({"sealed", time_text(version.sealed_at)});
    if (version.claimed_at) rows.push_back({"claimed time", time_text(*version.claimed_at)});
    if (version.problems != 0) rows.push_back({"incomplete", problems_text(version.problems)});
    if (version.origin) {
      rows.push_back({"copy of", origin_text(*version.origin)});
      if (!version.origin->whole) {
        rows.push_back({"left out", "damaged files of the original"});
      }
    }
    rows.insert(rows.end(), {{"entries", std::to_string(version.entries)},
                             {"data", size(version.logical_bytes)},
                             {"new when sealed", size(version.unique_bytes)},
                             {"stored when sealed", size(version.stored_bytes)}});
  }
  if (report.usage) {
    const VersionUsage& usage = *report.usage;
    rows.insert(rows.end(),
                {{"refers to", size(usage.referenced_bytes)},
                 {"shared", size(usage.shared_bytes)},
                 {"freed by deleting", size(usage.unique_bytes)},
                 {"kind", usage.side ? "side: partial, and does not count for the window" : "main"},
                 {"locked until", is_locked(usage) ? time_text(usage.locked_until) : "-"}});
    if (!usage.base_of.empty()) {
      rows.push_back({"base of", name_text(version.series_name + "/" + usage.base_of)});
    }
  }
  print(table(rows, "ll"));
}

int run_stat(const StatArguments& options) {
  const auto report = look(options);
  if (!report) return fail(report.error());
  if (options.json) {
    print_as_json(*report);
  } else {
    print_as_text(*report, options.exact);
  }
  return kExitOk;
}

}  // namespace

void add_stat_command(CommandLine& line, const Context& /*context*/) {
  auto options = std::make_shared<StatArguments>();
  auto command = line.add_command("stat", "Print the times and sizes of one version");
  command.add_places(options->words, "SERIES/VERSION");
  command.add_json_flag(options->json, "the version");
  command.add_bytes_flag(options->exact);
  command.run([options] { return run_stat(*options); });
}

}  // namespace varve::cli
