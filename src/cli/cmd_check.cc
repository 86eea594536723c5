// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "varve/maintenance.h"

namespace varve::cli {
namespace {

struct Options {
  std::string repository;
  bool quick = false;
  bool read_data = false;
  bool json = false;
  bool progress = false;
};

Result<CheckReport> check(const Options& options, const Context& context) {
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("checking", shown);
  // A check changes nothing, so it may end anywhere.
  const SignalWatch signals({.stop =
                                 [&] {
                                   progress.clear();
                                   std::fputs("varve: interrupted\n", stderr);
                                   std::_Exit(kExitInterrupted);
                                 },
                             .report = [&] { progress.print_line(); }});
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository, true));
  CheckOptions check_options;
  check_options.read_data = !options.quick;
  check_options.verify_chunks = options.read_data;
  return check_repository(*repository, check_options, [&](const CheckProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, 0);
  });
}

void print_damage(const Damage& damage, bool json) {
  if (json) {
    nlohmann::json object{{"type", "damage"}, {"what", damage.what}};
    put_name(object, "where", damage.where);
    auto& affected = object["affected"] = nlohmann::json::array();
    for (const std::string& name : damage.affected) {
      nlohmann::json file;
      put_name(file, "name", name);
      affected.push_back(std::move(file));
    }
    print_json(object);
    return;
  }
  print("damaged: " + printable(damage.where) + ": " + printable(damage.what) + "\n");
  for (const std::string& name : damage.affected) print("  affects " + printable(name) + "\n");
}

int run_check(Options options, const Context& context) {
  if (const auto given = take_repository({&options.repository}); !given) {
    return fail(given.error());
  }
  const auto report = check(options, context);
  if (!report) return fail(report.error());
  for (const Damage& damage : report->damages) print_damage(damage, options.json);
  if (options.json) {
    print_json({{"type", "summary"},
                {"versions", report->versions},
                {"containers", report->containers},
                {"chunks", report->chunks},
                {"bytes_read", report->bytes_read},
                {"damages", report->damages.size()}});
  } else if (!context.quiet) {
    print(fmt::format("{} versions, {} containers, {} chunks, {} read: {}\n", report->versions,
                      report->containers, report->chunks, size_text(report->bytes_read, false),
                      report->damages.empty()
                          ? std::string("no damage")
                          : fmt::format("{} damaged places", report->damages.size())));
  }
  return report->damages.empty() ? kExitOk : kExitError;
}

}  // namespace

void add_check_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "check", "Check that all that is stored can be given back; exit code 1 if not");
  command->add_option("REPO", options->repository, kRepositoryHelp);
  auto* quick = command->add_flag("--quick", options->quick, "Check the structure, read no data");
  command
      ->add_flag("--read-data", options->read_data,
                 "Also compare the SHA-256 of every chunk, not only the checksums")
      ->excludes(quick);
  command->add_flag("--json", options->json, "Results as JSON lines");
  command->add_flag("--progress", options->progress, "Show progress even if not on a terminal");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_check(*options, context); };
  });
}

}  // namespace varve::cli
