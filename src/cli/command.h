// SPDX-License-Identifier: Apache-2.0
// The parts that all commands of `varve` share: registration, exit codes, messages.
//
// A command lives in a file cmd_NAME.cc and offers add_NAME_command(). add_NAME_command() declares
// the command, the options and the function for the command's work. main() calls the function after
// parsing the whole command line. The function returns the exit code of the process:
//
//   void add_mount_command(CommandLine& line, const Context& context) {
//     auto options = std::make_shared<Options>();
//     auto command = line.add_command("mount", "Mount a repository");
//     command.add_repository(options->repository);
//     command.add_option("DIR", options->directory, "Where to mount it");
//     command.run([options, &context] { return run_mount(*options, context); });
//   }
//
// where run_mount() begins with
//   if (const auto given = take_repository({{"REPO", &options.repository},
//                                           {"DIR", &options.directory}}); !given)
//     return fail(given.error());
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cli/instance.h"
#include "control/mounted_path.h"
#include "varve/result.h"

namespace varve::cli {

class CommandLine;

/// Exit codes of the process.
inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
/// The command line is wrong, whatever the repository holds; nothing was done.
inline constexpr int kExitUsage = 2;
/// Done, but not completely: some files or versions are left.
inline constexpr int kExitIncomplete = 3;
inline constexpr int kExitNoRepository = 10;  ///< The folder is not a repository.
inline constexpr int kExitLocked = 11;        ///< Another process writes to the repository.
inline constexpr int kExitWrongKey = 12;  ///< No key, or a wrong key, for an encrypted repository.
/// The source of a store is empty, or has lost most of its content; nothing was stored.
inline constexpr int kExitRefused = 13;
inline constexpr int kExitInterrupted = 130;  ///< The user asked to stop.

/// Options common to all commands.
struct Context {
  bool quiet = false;                         ///< -q: errors only.
  int verbosity = 0;                          ///< Number of -v options.
  bool has_key = false;                       ///< The command line names a key.
  Instance instance{};                        ///< -R: the content of the file; empty without -R.
  std::vector<std::string> stored_command{};  ///< See take_stored_command().
};

/// Returns the exit code for `error`.
[[nodiscard]] int exit_code(const Error& error);

/// Returns the error for a wrong command line: a value, a combination of options, or a missing
/// word.
[[nodiscard]] inline Error usage_error(std::string message) {
  return {ErrorCode::kUsage, std::move(message)};
}

/// Returns the result of parsing a word of the command line: kInvalid becomes kUsage.
template <typename Value>
[[nodiscard]] Result<Value> as_usage(Result<Value> parsed) {
  if (parsed || parsed.error().code() != ErrorCode::kInvalid) return parsed;
  return usage_error(parsed.error().message());
}

/// Prints "varve: MESSAGE" to stderr, with control characters escaped. Returns exit_code(error).
int fail(const Error& error);

/// Prints "varve: MESSAGE" to stderr, unless -q was given.
void note(const Context& context, const std::string& message);

/// Prints each problem as a separate message, even with -q.
void report_problems(const std::vector<std::string>& problems);

/// A required argument of a command line, by its name in --help.
struct Positional {
  const char* name;
  std::string* value;
  std::string otherwise{};           ///< The value if the command line has none.
  bool may_hold_repository = false;  ///< Whether a repository may stand here, too.
};

/// Fills in VARVE_REPO where a command line leaves out the repository. `positionals` are the
/// required arguments in order, REPO first. If the last argument is missing and VARVE_REPO is set,
/// moves all arguments one place on and sets the first to VARVE_REPO. Then fills in
/// Positional::otherwise.
/// Errors: kInvalid if an argument is still missing, with the argument's name.
[[nodiscard]] Result<void> take_words(std::initializer_list<Positional> positionals);
/// Does as take_words(), and then replaces a place in an object store by the place's folder, as
/// use_folder_of_place() does.
[[nodiscard]] Result<void> take_repository(std::initializer_list<Positional> positionals,
                                           control::Purpose purpose = control::Purpose::kChange);

/// Returns the error for a command line without a repository.
[[nodiscard]] Error no_repository_named();

void add_init_command(CommandLine& line, const Context& context);
void add_attach_command(CommandLine& line, const Context& context);
void add_wait_command(CommandLine& line, const Context& context);
void add_mount_command(CommandLine& line, const Context& context);   // cmd_mount.cc
void add_umount_command(CommandLine& line, const Context& context);  // cmd_umount.cc
void add_seal_command(CommandLine& line, const Context& context);
void add_open_command(CommandLine& line, const Context& context);
void add_clone_command(CommandLine& line, const Context& context);
void add_reopen_command(CommandLine& line, const Context& context);
void add_ls_command(CommandLine& line, const Context& context);
void add_stat_command(CommandLine& line, const Context& context);
void add_du_command(CommandLine& line, const Context& context);
void add_history_command(CommandLine& line, const Context& context);
void add_diff_command(CommandLine& line, const Context& context);
void add_rm_command(CommandLine& line, const Context& context);
void add_prune_command(CommandLine& line, const Context& context);
void add_reclaim_command(CommandLine& line, const Context& context);
void add_key_command(CommandLine& line, const Context& context);
void add_lock_command(CommandLine& line, const Context& context);
void add_config_command(CommandLine& line, const Context& context);
void add_arrange_command(CommandLine& line, const Context& context);
void add_stats_command(CommandLine& line, const Context& context);
void add_status_command(CommandLine& line, const Context& context);
void add_check_command(CommandLine& line, const Context& context);
void add_repair_command(CommandLine& line, const Context& context);
void add_scrub_command(CommandLine& line, const Context& context);
void add_restore_command(CommandLine& line, const Context& context);
void add_store_command(CommandLine& line, const Context& context);
void add_dump_command(CommandLine& line, const Context& context);
void add_find_command(CommandLine& line, const Context& context);
void add_import_command(CommandLine& line, const Context& context);
void add_copy_command(CommandLine& line, const Context& context);
void add_serve_copy_command(CommandLine& line, const Context& context);  // cmd_serve_copy.cc
void add_mv_command(CommandLine& line, const Context& context);
void add_web_command(CommandLine& line, const Context& context);
void add_version_command(CommandLine& line, const Context& context);

}  // namespace varve::cli
