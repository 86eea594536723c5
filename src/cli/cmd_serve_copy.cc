// SPDX-License-Identifier: Apache-2.0
// The end of a copy on the target's machine, started by `varve copy` through ssh.
#include <unistd.h>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/command.h"
#include "cli/copy_place.h"
#include "cli/options.h"
#include "cli/owed_arranging.h"
#include "cli/progress.h"
#include "cli/quantity.h"
#include "control/local_control.h"
#include "control/mounted_path.h"
#include "control/stop_request.h"
#include "varve/copy.h"
#include "varve/copy_name.h"

namespace varve::cli {
namespace {

constexpr const char* kLockMaxDefault = "5y";

struct ServeArguments {
  std::string directory;
  bool no_arrange = false;
  bool existing = false;
  std::string lock_max = kLockMaxDefault;
  SourceRights rights;
};

void arrange_all(Repository& repository, const Context& context) {
  const auto series = repository.series();
  if (!series) return;
  std::vector<std::string> names;
  for (const SeriesInfo& one : *series) names.push_back(one.name);
  Progress progress("arranging", false);
  const control::StopRequest stop;
  control::LocalControl control(repository);
  arrange_owed(control, names, stop, progress, context);
}

/// Returns the rights given by the options.
Result<SourceRights> rights_of(const ServeArguments& options) {
  SourceRights rights = options.rights;
  VARVE_TRY_ASSIGN(rights.lock_seconds_max, parse_duration(options.lock_max));
  if (rights.origin.empty() || is_repository_id(rights.origin)) return rights;
  return usage_error(
      "--origin is the repository_id in the file varve.repo of the source: 32 digits "
      "and letters from a to f");
}

int run_serve(const ServeArguments& options, const Context& context) {
  const auto rights = rights_of(options);
  if (!rights) return fail(rights.error());
  if (::isatty(STDIN_FILENO) == 1) {
    return fail(Error(ErrorCode::kInvalid,
                      "this command receives a copy from `varve copy`; it is not for terminals"));
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<Repository> repository;
  const OpenTarget open = [&](const TargetSetup& setup, bool dry_run) -> Result<Repository*> {
    const auto purpose = dry_run ? control::Purpose::kLook : control::Purpose::kChange;
    VARVE_TRY_ASSIGN(const auto place, find_copy_place(options.directory, {}, {}, purpose));
    if (options.existing && !control::is_repository(place.folder)) {
      return Error(ErrorCode::kNoRepository, "there is no repository in " + options.directory +
                                                 ", and none is created there");
    }
    auto opened = open_copy_place(place, setup, dry_run, "", {});
    if (!opened && opened.error().code() == ErrorCode::kWrongKey) {
      return std::move(opened).error().with_more(
          " (VARVE_PASSPHRASE_FILE, VARVE_KEY_FILE or VARVE_KEY_COMMAND name the key on the "
          "machine "
          "of the target)");
    }
    VARVE_TRY_ASSIGN(repository, std::move(opened));
    return repository.get();
  };
  const auto served = serve_copy(open, *rights, STDIN_FILENO, STDOUT_FILENO);
  if (repository == nullptr) return served ? kExitOk : fail(served.error());
  if (served && !repository->read_only() && !options.no_arrange) arrange_all(*repository, context);
  const auto closed = repository->close();
  if (!served) return fail(served.error());
  return closed ? kExitOk : fail(closed.error());
}

}  // namespace

void add_serve_copy_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<ServeArguments>();
  auto command =
      line.add_command("serve-copy", "Receive a copy; `varve copy` runs this on the other machine");
  command.add_option("DIR", options->directory, "Folder of the repository that receives the copy")
      .required();
  command.add_flag("--existing", options->existing, "Refuse to create the repository");
  command
      .add_option("--origin", options->rights.origin,
                  "Take copies of this repository only (default: that of the first copy)")
      .type_name("ID");
  command.add_flag("--may-prune", options->rights.may_prune,
                   "Let the source delete its copies, with `varve copy --prune`");
  command
      .add_option("--lock-max", options->lock_max,
                  "Longest lock that the source may set, from now: 30d, 1y; 0d for none")
      .type_name("DURATION")
      .show_default();
  command
      .add_option("--series-max", options->rights.series_max,
                  "Largest number of series of the source and of series without versions; the "
                  "source creates no more")
      .type_name("N")
      .show_default();
  add_no_arrange_flag(command, options->no_arrange);
  command.run([options, &context] { return run_serve(*options, context); });
}

}  // namespace varve::cli
