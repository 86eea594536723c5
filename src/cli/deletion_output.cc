// SPDX-License-Identifier: Apache-2.0
#include "cli/deletion_output.h"
#include "cli/options.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/output.h"

namespace varve::cli {

void add_force_flags(Command& command, bool& force, bool& force_clock, const std::string& more) {
  command.add_flag(
      "--force", force,
      "Delete versions with open files too; programs that read them get errors" + more);
  command.add_flag("--force-clock", force_clock,
                   "Trust the clock even if it has jumped past the end of a lock");
}

namespace {

void print_action(const VersionInfo& version, const char* action, const std::string& more,
                  const DeletionFormat& format) {
  if (format.json) {
    auto object = version_json(version);
    object["type"] = "version";
    object["action"] = action;
    print_json(object);
    return;
  }
  print(fmt::format("{} {}, {}\n", action, name_text(version.series_name + "/" + version.name),
                    more));
}

}  // namespace

void print_deleted(const VersionInfo& version, const DeletionFormat& format) {
  print_action(version, format.dry_run ? "would delete" : "deleted",
               "sealed " + time_text(version.sealed_at), format);
}

void print_discarded(const VersionInfo& version, const DeletionFormat& format) {
  print_action(version, format.dry_run ? "would discard" : "discarded",
               fmt::format("{}, {} stored", open_text(version),
                           exact_size_text(version.stored_bytes, format.exact)),
               format);
}

void print_deletion(const SeriesInfo& series, const DeletionForecast& forecast,
                    const DeletionFormat& format) {
  if (format.json) {
    Json object{{"type", "deletion"},
                {"dry_run", format.dry_run},
                {"versions", forecast.versions.size()},
                {"freed_bytes", forecast.freed_bytes},
                {"dead_bytes", forecast.dead_bytes},
                {"chunks", forecast.chunks},
                {"chunk_bytes", forecast.chunk_bytes},
                {"waiting_bytes", forecast.waiting_bytes}};
    put_name(object, "series", series.name);
    if (forecast.waiting_bytes != 0) put_name(object, "waiting_for", forecast.waiting_for);
    print_json(object);
    return;
  }
  std::string line = fmt::format("{}: {} version{}, {} {}", name_text(series.name),
                                 forecast.versions.size(), forecast.versions.size() == 1 ? "" : "s",
                                 exact_size_text(forecast.freed_bytes, format.exact),
                                 format.dry_run ? "would be freed" : "freed");
  if (forecast.dead_bytes != 0) {
    line += fmt::format("; {} more as arranging rewrites the data around it",
                        size_text(forecast.dead_bytes, format.exact));
  }
  if (forecast.waiting_bytes != 0) {
    line += fmt::format("; {} more when the open version {} is sealed or dropped",
                        size_text(forecast.waiting_bytes, format.exact),
                        name_text(forecast.waiting_for));
  }
  print(line + "\n");
}

void print_held(const SeriesInfo& series, const DeletionForecast& forecast,
                const DeletionFormat& format) {
  std::vector<std::string> problems;
  for (const HeldVersion& held : forecast.held) {
    if (format.json) {
      Json object{{"type", "held"},
                  {"number", static_cast<std::uint32_t>(held.number)},
                  {"reason", held.reason}};
      put_name(object, "series", series.name);
      print_json(object);
    }
    problems.push_back(series.name + ": " + held.reason);
  }
  report_problems(problems);
}

}  // namespace varve::cli
