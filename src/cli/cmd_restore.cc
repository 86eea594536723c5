// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/version_path.h"
#include "varve/maintenance.h"

namespace varve::cli {
namespace {

struct Options {
  std::string repository;
  std::string version;
  std::string directory;
  bool progress = false;
};

Result<TransferReport> restore(const Options& options, const Context& context) {
  VARVE_TRY_ASSIGN(const VersionPath path, require_version(options.version, true));
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("restoring", shown);
  std::atomic<bool> stop = false;
  const SignalWatch signals(
      {.stop = [&] { stop = true; }, .report = [&] { progress.print_line(); }});
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository));
  VARVE_TRY_ASSIGN(const VersionInfo info, find_version(*repository, path));
  VARVE_TRY_ASSIGN(const auto reader, repository->reader(info.series, info.number));
  RestoreOptions restore_options;
  restore_options.path = path.path;
  return restore_version(*reader, options.directory, restore_options,
                         [&](const TransferProgress& done) {
                           progress.update(done.bytes_done, done.bytes_total, done.files_done);
                           return !stop;
                         });
}

int run_restore(Options options, const Context& context) {
  if (const auto given =
          take_repository({&options.repository, &options.version, &options.directory});
      !given) {
    return fail(given.error());
  }
  const auto report = restore(options, context);
  if (!report) return fail(report.error());
  report_problems(report->problems);
  note(context, fmt::format("restored {} entries with {} to {}{}", report->entries,
                            size_text(report->bytes, false), options.directory,
                            report->problems.empty() ? "" : ", not all of it: see above"));
  return report->problems.empty() ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_restore_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("restore", "Copy a version, or a part of it, to a directory");
  command->add_option("REPO", options->repository, kRepositoryHelp);
  command->add_option("VERSION", options->version,
                      "SERIES/VERSION[/path]; \"latest\" is the newest sealed version");
  command->add_option("DIR", options->directory, "Where to: an empty or new directory");
  command->add_flag("--progress", options->progress, "Show progress even if not on a terminal");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_restore(*options, context); };
  });
}

}  // namespace varve::cli
