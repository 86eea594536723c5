// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/version_path.h"
#include "cli/version_target.h"

namespace varve::cli {
namespace {

struct CloneArguments {
  std::string repository;
  std::string source;
  std::string target;
  bool json = false;
};

struct Clone {
  std::string repository;
  VersionPath source;
  VersionPath target;
};

/// With two arguments: paths in a mount, or versions of the repository in VARVE_REPO.
Result<Clone> find_clone(CloneArguments options) {
  Clone clone;
  VersionTarget source;
  VersionTarget target;
  if (!options.target.empty()) {
    if (auto swapped = swapped_words(options.repository, {options.source, options.target})) {
      return std::move(*swapped);
    }
    VARVE_TRY_ASSIGN(source, find_target(options.repository, options.source));
    VARVE_TRY_ASSIGN(target, find_new_target(options.repository, options.target));
  } else if (options.source.empty()) {
    return usage_error(
        "a version is missing; give REPO SERIES/SOURCE SERIES/NEW, or two paths in a mount");
  } else if (holds_repository(options.repository)) {
    return usage_error(
        "the name of the new version is missing; the arguments are REPO SERIES/SOURCE "
        "SERIES/NEW");
  } else {
    VARVE_TRY_ASSIGN(source, find_target(options.repository, {}));
    VARVE_TRY_ASSIGN(target, find_new_target(options.source, {}));
  }
  if (source.version.series != target.version.series || source.repository != target.repository) {
    return Error(ErrorCode::kOtherVersion, "a version and its clone must be in the same series");
  }
  clone.repository = std::move(source.repository);
  clone.source = std::move(source.version);
  clone.target = std::move(target.version);
  return clone;
}

Result<VersionInfo> make_clone(const Clone& clone, bool json) {
  control::OpenRequest request;
  request.version = name_of(clone.target);
  request.source = name_of(clone.source);
  VARVE_TRY_ASSIGN(const auto control, open_control(clone.repository));
  report_lost_files(*control, request.source, json);
  return close_after(*control, control->clone(request));
}

int run_clone(const CloneArguments& options, const Context& context) {
  const auto clone = find_clone(options);
  if (!clone) return fail(clone.error());
  const auto made = make_clone(*clone, options.json);
  if (!made) return fail(made.error());
  if (options.json) {
    print_json("version", version_json(*made));
  } else {
    note(context, name_of(clone->target) + " is open as a clone of " + name_of(clone->source));
  }
  return kExitOk;
}

}  // namespace

void add_clone_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<CloneArguments>();
  auto command =
      line.add_command("clone", "Open a new version that starts with the tree of a sealed one");
  command.add_option("REPO", options->repository,
                     "Folder of the repository (default: $VARVE_REPO); omit it if both versions "
                     "are paths in a mount");
  command.add_option("SOURCE", options->source,
                     "SERIES/VERSION of a sealed version; SERIES/latest is the newest");
  command.add_option("NEW", options->target, "SERIES/VERSION of the new version");
  command.add_json_flag(options->json, "the new version");
  command.run([options, &context] { return run_clone(*options, context); });
}

}  // namespace varve::cli
