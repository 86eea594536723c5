// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "control/named_version.h"

namespace varve::cli {
namespace {

struct DuArguments {
  std::vector<std::string> words;
  bool json = false;
  bool exact = false;
};

struct Line {
  VersionInfo version;
  VersionUsage usage;
};

struct DuReport {
  std::vector<Line> lines;
  std::uint64_t logical_bytes = 0;
  std::vector<VersionKey> taken;   ///< Versions counted by `unique_bytes`.
  std::uint64_t unique_bytes = 0;  ///< Bytes freed by deleting all of `taken`.
};

/// Returns the requested versions, by series; an empty list stands for all versions of a series.
Result<std::map<SeriesId, std::vector<VersionNumber>>> find_wanted(
    Repository& repository, const std::vector<VersionPath>& places) {
  std::map<SeriesId, std::vector<VersionNumber>> wanted;
  std::vector<SeriesId> whole;
  for (const VersionPath& place : places) {
    if (place.version.empty()) {
      VARVE_TRY_ASSIGN(const SeriesInfo series, control::find_series(repository, place.series));
      whole.push_back(series.id);
      continue;
    }
    VARVE_TRY_ASSIGN(const VersionInfo version, find_whole_version(repository, place));
    wanted[version.series].push_back(version.number);
  }
  if (places.empty()) {
    VARVE_TRY_ASSIGN(const auto all, repository.series());
    for (const SeriesInfo& series : all) whole.push_back(series.id);
  }
  for (const SeriesId series : whole) wanted[series].clear();
  return wanted;
}

Result<void> measure(Repository& repository, SeriesId series,
                     const std::vector<VersionNumber>& numbers, DuReport& report) {
  VARVE_TRY_ASSIGN(const auto versions, repository.versions(series));
  VARVE_TRY_ASSIGN(const auto usages, repository.version_usage(series));
  const std::set<VersionNumber> chosen(numbers.begin(), numbers.end());
  std::vector<VersionNumber> taken;
  auto version = versions.begin();
  for (const VersionUsage& usage : usages) {
    // Both lists ascend.
    while (version != versions.end() && version->number < usage.number) ++version;
    const bool known = version != versions.end() && version->number == usage.number;
    if (!known || !(numbers.empty() || chosen.contains(usage.number))) continue;
    report.lines.push_back({*version, usage});
    report.logical_bytes += usage.logical_bytes;
    taken.push_back(usage.number);
  }
  if (taken.empty()) return {};
  DeletionOptions options;
  options.deleted_before = report.taken;
  VARVE_TRY_ASSIGN(const auto together, repository.forecast_deletion(series, taken, options));
  for (const auto number : taken) report.taken.push_back({series, number});
  report.unique_bytes += together.freed_bytes;
  return {};
}

Result<DuReport> measure_all(const DuArguments& options) {
  VARVE_TRY_ASSIGN(const NamedPlaces named, find_places(options.words, {}));
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(named.repository));
  VARVE_TRY_ASSIGN(const auto wanted, find_wanted(*repository, named.places));
  DuReport report;
  for (const auto& [series, numbers] : wanted) {
    VARVE_TRY(measure(*repository, series, numbers, report));
  }
  return report;
}

void print_as_json(const DuReport& report) {
  for (const Line& line : report.lines) {
    Json object = version_json(line.version);
    object["logical_bytes"] = line.usage.logical_bytes;
    object["referenced_bytes"] = line.usage.referenced_bytes;
    object["unique_bytes"] = line.usage.unique_bytes;
    object["shared_bytes"] = line.usage.shared_bytes;
    print_json("version", std::move(object));
  }
  print_json("total", {{"versions", report.lines.size()},
                       {"logical_bytes", report.logical_bytes},
                       {"freed_bytes", report.unique_bytes}});
}

void print_as_text(const DuReport& report, bool exact) {
  const auto size = [exact](std::uint64_t bytes) { return size_text(bytes, exact); };
  std::vector<std::vector<std::string>> rows{
      {"VERSION", "SEALED", "LOGICAL", "REFERENCED", "UNIQUE", "SHARED"}};
  for (const Line& line : report.lines) {
    rows.push_back({name_text(line.version.series_name + "/" + line.version.name),
                    time_text(line.version.sealed_at), size(line.usage.logical_bytes),
                    size(line.usage.referenced_bytes), size(line.usage.unique_bytes),
                    size(line.usage.shared_bytes)});
  }
  rows.push_back({"total", "", size(report.logical_bytes), "", size(report.unique_bytes), ""});
  print(table(rows, "llrrrr"));
}

int run_du(const DuArguments& options) {
  const auto report = measure_all(options);
  if (!report) return fail(report.error());
  if (options.json) {
    print_as_json(*report);
  } else {
    print_as_text(*report, options.exact);
  }
  return kExitOk;
}

}  // namespace

void add_du_command(CommandLine& line, const Context& /*context*/) {
  auto options = std::make_shared<DuArguments>();
  auto command = line.add_command("du", "Print the space that each sealed version takes");
  command.add_places(options->words, "SERIES or SERIES/VERSION, one or more (default: all)");
  command.add_json_flag(options->json, "the versions, then their sums");
  command.add_bytes_flag(options->exact);
  command.run([options] { return run_du(*options); });
}

}  // namespace varve::cli
