// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/version_target.h"

namespace varve::cli {
namespace {

struct ReopenArguments {
  TargetWords words;
  bool json = false;
};

Result<VersionInfo> reopen(const VersionTarget& target, bool json) {
  control::OpenRequest request;
  request.version = request.source = name_of(target.version);
  VARVE_TRY_ASSIGN(const auto control, open_control(target.repository));
  report_lost_files(*control, request.source, json);
  return close_after(*control, control->clone(request));
}

int run_reopen(const ReopenArguments& options, const Context& context) {
  const auto target = find_target(options.words.first, options.words.second);
  if (!target) return fail(target.error());
  const auto made = reopen(*target, options.json);
  if (!made) return fail(made.error());
  if (options.json) {
    print_json("version", version_json(*made));
  } else {
    note(context, made->series_name + "/" + made->name +
                      " is open; `varve seal` makes it replace " + name_of(target->version));
  }
  return kExitOk;
}

}  // namespace

void add_reopen_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<ReopenArguments>();
  auto command = line.add_command(
      "reopen", "Continue the newest sealed version; the next seal replaces it and takes its name");
  add_target_words(command, options->words, "the version",
                   "SERIES/VERSION: the newest sealed version of its series");
  command.add_json_flag(options->json, "the open version");
  command.run([options, &context] { return run_reopen(*options, context); });
}

}  // namespace varve::cli
