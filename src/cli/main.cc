// SPDX-License-Identifier: Apache-2.0
// The `varve` program. Each command has a separate file; see command.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/free_memory.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/instance.h"
#include "cli/key_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/stream_input.h"
#include "control/client_state.h"
#include "fs/mount_main.h"

namespace varve::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 error or damage, 2 wrong command line, 3 done but not for all files,\n"
    "10 no repository, 11 another process writes to the repository, 12 no key or a wrong one,\n"
    "13 the source of a store is empty or shrank, 130 interrupted.\n"
    "VARVE_REPO names the repository if the command line names none.\n"
    "`varve help COMMAND` prints the options of a command; varve(1) tells more.";

void add_commands(CommandLine& line, const Context& context) {
  line.begin_group("Backups");
  add_store_command(line, context);
  add_import_command(line, context);
  add_open_command(line, context);
  add_clone_command(line, context);
  add_reopen_command(line, context);
  add_seal_command(line, context);
  add_copy_command(line, context);
  add_serve_copy_command(line, context);
  add_wait_command(line, context);
  line.begin_group("Reading and restoring");
  add_restore_command(line, context);
  add_mount_command(line, context);
  add_umount_command(line, context);
  add_ls_command(line, context);
  add_find_command(line, context);
  add_diff_command(line, context);
  add_history_command(line, context);
  add_dump_command(line, context);
  add_web_command(line, context);
  line.begin_group("Deletion");
  add_rm_command(line, context);
  add_prune_command(line, context);
  add_mv_command(line, context);
  add_lock_command(line, context);
  add_reclaim_command(line, context);
  line.begin_group("State and care");
  add_status_command(line, context);
  add_stats_command(line, context);
  add_stat_command(line, context);
  add_du_command(line, context);
  add_check_command(line, context);
  add_scrub_command(line, context);
  add_repair_command(line, context);
  add_arrange_command(line, context);
  line.begin_group("Repositories");
  add_init_command(line, context);
  add_attach_command(line, context);
  add_config_command(line, context);
  add_key_command(line, context);
  add_version_command(line, context);
}

/// Turns `help COMMAND` into `COMMAND --help`. Parsing refuses an unknown command.
void take_help(std::vector<std::string>& words, const CommandLine& line) {
  const auto command =
      std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with('-'); });
  if (command == words.end() || *command != "help") return;
  const auto about = words.erase(command);
  if (about == words.end() || line.has_command(*about)) words.emplace_back("--help");
}

base::LogLevel log_level(const Context& context) {
  if (context.quiet) return base::LogLevel::kError;
  if (context.verbosity == 0) return base::LogLevel::kWarning;
  return context.verbosity == 1 ? base::LogLevel::kInfo : base::LogLevel::kDebug;
}

/// Checks the option --lock-wait, or the environment variable for the option, and sets the
/// variable.
Result<void> take_lock_wait(const std::string& option) {
  const char* const variable = std::getenv(kLockWaitVariable);
  const std::string value = option.empty() && variable != nullptr ? variable : option;
  if (value.empty()) return {};
  VARVE_TRY(parse_wait(value));
  ::setenv(kLockWaitVariable, value.c_str(), 1);
  return {};
}

int run(int argc, char** argv) {
  Context context;
  CommandLine line(
      {.name = "varve",
       .description = "Varve keeps backup versions of directory trees, each chunk of data once.",
       .footer = kFooter,
       .version = "varve " VARVE_VERSION});
  const auto quiet = line.add_flag("-q,--quiet", context.quiet,
                                   "Print only errors, and what the command was asked for");
  line.add_flag("-v,--verbose", context.verbosity, "Print more messages; twice for still more")
      .excludes(quiet);
  std::string late;
  line.add_option("-R,--instance", late,
                  "Before the command: use the repository and options of /etc/varve/NAME.conf")
      .type_name("NAME");
  control::KeyPlace key;
  add_key_options(line, key);
  bool accepts_older = false;
  line.add_flag("--accept-older", accepts_older,
                "Use an encrypted repository that is older than this machine remembers");
  std::string lock_wait;
  line.add_option("--lock-wait", lock_wait,
                  "How long to wait while another process uses the repository, such as 30s or 2h "
                  "(default: 10min for store and prune, 10s for other changes)")
      .not_empty()
      .type_name("DURATION");
  add_commands(line, context);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  auto instance = take_instance(words);
  if (!instance) return fail(instance.error());
  context.instance = *std::move(instance);
  context.stored_command = take_stored_command(words);
  take_help(words, line);
  if (const auto ended = line.parse(words)) {
    if (*ended != kExitOk && !context.instance.path.empty()) {
      note(context, "options of " + context.instance.path + " are a part of the command line");
    }
    return *ended;
  }
  if (!late.empty()) return fail(usage_error("give -R before the command: varve -R NAME COMMAND"));
  if (const auto fit = check_key_options(key); !fit) return fail(fit.error());
  put_key_into_environment(key);
  context.has_key = !key.empty();
  if (const auto fit = take_lock_wait(lock_wait); !fit) return fail(fit.error());
  if (accepts_older) ::setenv(control::kAcceptOlderVariable, "1", 1);
  base::set_log_level(log_level(context));
  const int code = line.run();
  const auto finished = finish_output();
  return finished ? code : fail(finished.error());
}

/// Opens standard descriptors closed by the caller. Otherwise, a file of the repository could get a
/// standard number, and a message would be written into the file.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);
  }
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace
}  // namespace varve::cli

int main(int argc, char** argv) {
  varve::cli::open_standard_descriptors();
  varve::base::bound_free_memory();
  try {
    // mount(8) calls the program by the names below, with the arguments in a different order.
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
