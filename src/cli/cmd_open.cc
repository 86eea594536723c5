// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/version_target.h"

namespace varve::cli {
namespace {

struct OpenArguments {
  TargetWords words;
  bool json = false;
};

/// Requests a version. The root gets the attributes of a directory made by mkdir(1).
control::OpenRequest request_for(const VersionPath& version) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  control::OpenRequest request;
  request.version = name_of(version);
  request.mode = S_IFDIR | (0777U & ~mask);
  request.uid = ::geteuid();
  request.gid = ::getegid();
  return request;
}

Result<VersionInfo> open(const VersionTarget& target) {
  VARVE_TRY_ASSIGN(const auto control, open_control(target.repository));
  return close_after(*control, control->open(request_for(target.version)));
}

int run_open(const OpenArguments& options, const Context& context) {
  const auto target = find_new_target(options.words.first, options.words.second);
  if (!target) return fail(target.error());
  const auto opened = open(*target);
  if (!opened) return fail(opened.error());
  if (options.json) {
    print_json("version", version_json(*opened));
  } else {
    note(context, name_of(target->version) + " is open");
  }
  return kExitOk;
}

}  // namespace

void add_open_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<OpenArguments>();
  auto command = line.add_command("open", "Open a new, empty version, as mkdir in a mount does");
  add_target_words(command, options->words, "the new version",
                   "SERIES/VERSION; creates the series if needed");
  command.add_json_flag(options->json, "the new version");
  command.run([options, &context] { return run_open(*options, context); });
}

}  // namespace varve::cli
