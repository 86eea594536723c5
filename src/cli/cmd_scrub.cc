// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "cli/check_output.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "varve/maintenance.h"

namespace varve::cli {
namespace {

struct Options {
  std::string repository;
  std::string rate;
  std::string time;
  bool anew = false;
  bool json = false;
  bool progress = false;
};

Result<ScrubReport> scrub(const Options& options, const Context& context) {
  using Clock = std::chrono::steady_clock;
  ScrubOptions how;
  how.anew = options.anew;
  if (!options.rate.empty()) {
    VARVE_TRY_ASSIGN(how.bytes_per_second, parse_bytes(options.rate));
  }
  Clock::time_point end = Clock::time_point::max();
  if (!options.time.empty()) {
    VARVE_TRY_ASSIGN(const auto seconds, parse_duration(options.time));
    end = Clock::now() + std::chrono::seconds(seconds);
  }
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("checking", shown);
  std::stop_source source;
  how.stop = source.get_token();
  // Told to stop, it remembers where it is.
  const SignalWatch signals(
      {.stop = [&] { source.request_stop(); }, .report = [&] { progress.print_line(); }});
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository, true));
  return scrub_repository(*repository, how, [&](const CheckProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, 0);
    if (Clock::now() >= end) source.request_stop();
  });
}

int run_scrub(Options options, const Context& context) {
  if (const auto given = take_repository({&options.repository}); !given) {
    return fail(given.error());
  }
  const auto report = scrub(options, context);
  if (!report) return fail(report.error());
  if (report->damages_before != 0) {
    note(context,
         fmt::format("this pass had found {} damaged places before", report->damages_before));
  }
  print_check_report(report->check, options.json, context);
  if (!report->check.damages.empty()) return kExitError;
  return report->check.finished ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_scrub_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* command =
      app.add_subcommand("scrub", "Read and compare all data, going on where the last run stopped");
  command->add_option("REPO", options->repository, kRepositoryHelp);
  command->add_option("--rate", options->rate, "Bytes a second to read at most, such as 50M");
  command->add_option("--for", options->time, "Stop after this time, such as 6h");
  command->add_flag("--anew", options->anew, "Begin at the start, wherever the last run stopped");
  command->add_flag("--json", options->json, "Results as JSON lines");
  command->add_flag("--progress", options->progress, "Show progress even if not on a terminal");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_scrub(*options, context); };
  });
}

}  // namespace varve::cli
