// SPDX-License-Identifier: Apache-2.0
#include "cli/deletion_output.h"

#include <fmt/core.h>

#include <utility>

#include "cli/command.h"
#include "cli/options.h"
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

void print_action(const VersionInfo& version, const char* action, const DeletionFormat& format) {
  auto object = version_json(version);
  object["action"] = action;
  object["dry_run"] = format.dry_run;
  print_json("version", std::move(object));
}

}  // namespace

void print_deleted(const VersionInfo& version, const DeletionFormat& format) {
  if (format.json) return print_action(version, "delete", format);
  if (format.silent) return;
  print(fmt::format("{} {}, sealed {}\n", format.dry_run ? "would delete" : "deleted",
                    name_text(version.series_name + "/" + version.name),
                    time_text(version.sealed_at)));
}

void print_discarded(const VersionInfo& version, const DeletionFormat& format) {
  if (format.json) return print_action(version, "discard", format);
  if (format.silent) return;
  print(fmt::format("{} {}, {}, {} stored\n", format.dry_run ? "would discard" : "discarded",
                    name_text(version.series_name + "/" + version.name), open_text(version),
                    exact_size_text(version.stored_bytes, format.exact)));
}

void print_deletion(const SeriesInfo& series, const DeletionForecast& forecast,
                    const DeletionFormat& format) {
  if (format.json) {
    Json object{{"dry_run", format.dry_run},
                {"versions", forecast.versions.size()},
                {"freed_bytes", forecast.freed_bytes},
                {"dead_bytes", forecast.dead_bytes},
                {"chunks", forecast.chunks},
                {"chunk_bytes", forecast.chunk_bytes},
                {"waiting_bytes", forecast.waiting_bytes}};
    put_name(object, "series", series.name);
    if (forecast.waiting_bytes != 0) put_name(object, "waiting_for", forecast.waiting_for);
    print_json("deletion", std::move(object));
    return;
  }
  if (format.silent) return;
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
      Json object{{"number", static_cast<std::uint32_t>(held.number)}, {"reason", held.reason}};
      put_name(object, "series", series.name);
      print_json("held", std::move(object));
    }
    problems.push_back(series.name + ": " + held.reason);
  }
  report_problems(problems);
}

}  // namespace varve::cli
