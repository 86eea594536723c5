// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "control/mounted_path.h"
#include "control/place_folder.h"
#include "varve/remote_folder.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

struct AttachArguments {
  PlaceOptions store;
  std::string folder;
  bool writes = false;
  bool rebuilds = false;
  bool dry_run = false;
  bool yes = false;
  bool json = false;
};

// Asks for consent at a terminal, unless --yes gave the consent.
bool agreed(const AttachArguments& options) {
  if (options.yes) return true;
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) return false;
  std::fputs("varve: rebuild the catalog? [y/N] ", stderr);
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

void print_survey(const StoreSurvey& survey, bool json) {
  if (json) {
    print_json("survey", {{"objects", survey.objects},
                          {"object_bytes", survey.bytes},
                          {"requests", survey.requests},
                          {"read_bytes", survey.bytes_read}});
    return;
  }
  print(
      fmt::format("the rebuild reads {} objects of {} bytes by about {} range requests: small "
                  "files of {} bytes whole, and the headers of all containers\n",
                  survey.objects, survey.bytes, survey.requests, survey.bytes_read));
}

// Prints the costs of a rebuild, and asks. Returns the exit code if the rebuild must not begin.
Result<std::optional<int>> plan_rebuild(const AttachArguments& options, const OpenOptions& how,
                                        const Context& context) {
  VARVE_TRY_ASSIGN(const auto survey, survey_store(options.store.place, how));
  if (!context.quiet || options.dry_run) print_survey(survey, options.json);
  if (options.dry_run) return std::optional(kExitOk);
  if (agreed(options)) return std::optional<int>();
  note(context, "nothing was changed; --yes rebuilds the catalog");
  return std::optional(kExitIncomplete);
}

// Returns the exit code.
Result<int> rebuild(const AttachArguments& options, const OpenOptions& how, AttachRole role,
                    const Context& context) {
  VARVE_TRY_ASSIGN(const auto rebuilt,
                   rebuild_from_store(options.store.place, options.folder, how, role));
  for (const auto& problem : rebuilt.problems) {
    if (options.json) print_json("problem", {{"what", printable(problem)}});
    if (!options.json) print("lost: " + printable(problem) + "\n");
  }
  for (const auto& what : rebuilt.notes) note(context, printable(what));
  note(context, fmt::format("{} versions were rebuilt. Versions and series that were deleted "
                            "within the last day may be back; `varve check --read-data` compares "
                            "all data with its checksums",
                            rebuilt.versions));
  return rebuilt.problems.empty() ? kExitOk : kExitIncomplete;
}

// A mount shows the folder as an attached one until its end.
Result<void> require_unmounted(const std::string& folder) {
  const auto mounts = control::find_mounts_of(folder);
  if (!mounts && mounts.error().code() != ErrorCode::kNotFound) return mounts.error();
  if (!mounts || mounts->empty()) return {};
  return Error(ErrorCode::kLocked, folder + " is mounted on " + mounts->front().mount_point +
                                       "; unmount it first, then the folder can take over");
}

int run_attach(AttachArguments options, const Context& context) {
  if (!control::names_store(options.store.place.place)) {
    return fail(
        usage_error(options.store.place.place + " is no object store; give s3://BUCKET/PREFIX"));
  }
  if (const auto taken = take_sizes(options.store); !taken) return fail(taken.error());
  put_into_environment(options.store);
  auto how = options_to_write(options.folder);
  how.read_only = true;
  const auto role = options.writes ? AttachRole::kWrites : AttachRole::kReads;
  const auto present = RemoteFolder(options.folder, is_trusted(options.folder)).info();
  const bool is_known = present && *present;
  if (!is_known) {
    const auto outside =
        check_outside_repositories(options.folder, PlaceKind::kRepository, own_folders(""),
                                   "attach the store to a folder outside it");
    if (!outside) return fail(outside.error());
  }
  const bool is_promoted =
      options.writes && !options.rebuilds && is_known && (*present)->reads_only;
  if (is_promoted) {
    if (const auto unused = require_unmounted(options.folder); !unused) return fail(unused.error());
  }
  int code = kExitOk;
  if (options.rebuilds) {
    const auto stops = plan_rebuild(options, how, context);
    if (!stops) return fail(stops.error());
    if (*stops) return **stops;
    const auto done = rebuild(options, how, role, context);
    if (!done) return fail(done.error());
    code = *done;
  } else {
    const auto attached = attach_to_store(options.store.place, options.folder, how, role);
    if (!attached) return fail(attached.error());
  }
  remember_store_folder(how.memory_folder, options.store.place.place, options.folder);
  if (options.json) {
    Json object = Json::object();
    put_name(object, "repository", options.folder);
    print_json("repository", std::move(object));
  } else {
    note(context, options.folder + (options.writes ? " writes to" : " reads") +
                      " the repository in " + options.store.place.place +
                      (is_promoted ? " from now on; it keeps its settings"
                       : is_known  ? " already; it keeps its settings"
                                   : ""));
  }
  return code;
}

}  // namespace

void add_attach_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<AttachArguments>();
  auto command =
      line.add_command("attach", "Make a folder that reads a repository in an object store");
  command.add_option("STORE", options->store.place.place, "s3://BUCKET/PREFIX").required();
  command
      .add_option("DIR", options->folder,
                  "An empty or new folder; with --write also a folder that is attached already")
      .required();
  command.add_flag("--write", options->writes,
                   "Take over: make this the only folder that writes to the repository");
  command.add_flag("--rebuild", options->rebuilds,
                   "Rebuild a catalog that the store has lost, from the data in the store");
  command.add_flag("-n,--dry-run", options->dry_run,
                   "With --rebuild: only count the objects and requests");
  command.add_flag("--yes", options->yes, "With --rebuild: do not ask");
  add_store_options(command, options->store);
  command.add_json_flag(options->json, "the folder");
  command.run([options, &context] { return run_attach(*options, context); });
}

}  // namespace varve::cli
