// SPDX-License-Identifier: Apache-2.0
// The `varve` program. Each command has its own file; see command.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "fs/mount_main.h"

namespace varve::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 error or damage, 3 done but not for all files, 10 no repository,\n"
    "11 another process writes to the repository, 130 interrupted.\n"
    "VARVE_REPO names the repository where none is given. See varve(1).";

void add_commands(CLI::App& app, Context& context) {
  add_init_command(app, context);
  add_mount_command(app, context);
  add_umount_command(app, context);
  add_seal_command(app, context);
  add_open_command(app, context);
  add_clone_command(app, context);
  add_reopen_command(app, context);
  add_store_command(app, context);
  add_ls_command(app, context);
  add_stat_command(app, context);
  add_du_command(app, context);
  add_diff_command(app, context);
  add_history_command(app, context);
  add_restore_command(app, context);
  add_rm_command(app, context);
  add_prune_command(app, context);
  add_lock_command(app, context);
  add_arrange_command(app, context);
  add_stats_command(app, context);
  add_check_command(app, context);
  add_scrub_command(app, context);
  add_repair_command(app, context);
  add_version_command(app, context);
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string reason = error.what();
  if (app.get_subcommands().empty() && !app.remaining().empty()) {
    reason = "there is no command \"" + app.remaining().front() + "\"";
  }
  std::string command = "varve";
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  const std::string text =
      "varve: " + printable(reason) + "\nvarve: see `" + command + " --help`\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  return kExitError;
}

base::LogLevel log_level(const Context& context) {
  if (context.quiet) return base::LogLevel::kError;
  if (context.verbosity == 0) return base::LogLevel::kWarning;
  return context.verbosity == 1 ? base::LogLevel::kInfo : base::LogLevel::kDebug;
}

int run(int argc, char** argv) {
  Context context;
  CLI::App app("Varve keeps backup versions of directory trees, each chunk of data once.", "varve");
  app.require_subcommand(1);
  // Accepts -v and -q after the command too.
  app.fallthrough();
  app.set_version_flag("--version", "varve " VARVE_VERSION);
  app.footer(kFooter);
  auto* quiet = app.add_flag("-q,--quiet", context.quiet, "Print errors and results only");
  app.add_flag("-v,--verbose", context.verbosity, "Print more messages; twice for still more")
      ->excludes(quiet);
  add_commands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return usage_error(app, error);
    (void)app.exit(error);  // Prints the requested help or version.
    return kExitOk;
  }
  base::set_log_level(log_level(context));
  const int code = context.run();
  const auto finished = finish_output();
  return finished ? code : fail(finished.error());
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace
}  // namespace varve::cli

int main(int argc, char** argv) {
  try {
    // mount(8) calls this program by these names, with its own order of arguments.
    const std::string_view name = varve::cli::base_name(argc > 0 ? argv[0] : "varve");
    if (name == "mount.fuse.varve" || name == "mount.varve") {
      return varve::fs::mount_main(argc, argv);
    }
    return varve::cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "varve: %s\n", error.what());
    return varve::cli::kExitError;
  }
}
