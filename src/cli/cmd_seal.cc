// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/version_path.h"
#include "control/client.h"
#include "control/mount_table.h"

namespace varve::cli {
namespace {

struct Options {
  std::string first;   ///< The repository, or a path in a mount.
  std::string second;  ///< The version.
  std::string new_name;
  bool wait = false;
};

struct Target {
  std::string repository;
  VersionPath version;
};

/// A single argument is a path in a mount, or a version of the repository in VARVE_REPO.
Result<Target> find_target(const Options& options) {
  Target target;
  if (!options.second.empty()) {
    target.repository = options.first;
    VARVE_TRY_ASSIGN(target.version, require_version(options.second, false));
    return target;
  }
  if (options.first.empty()) {
    return Error(ErrorCode::kInvalid,
                 "name what to seal: REPO SERIES/VERSION, or a version's path in a mount");
  }
  auto mounted = control::find_mount(options.first);
  if (mounted) {
    target.repository = mounted->repository;
    VARVE_TRY_ASSIGN(target.version, require_version(mounted->relative, false));
    return target;
  }
  const char* from_environment = std::getenv("VARVE_REPO");
  if (from_environment == nullptr || *from_environment == '\0') {
    return std::move(mounted).error().with_context(options.first);
  }
  target.repository = from_environment;
  VARVE_TRY_ASSIGN(target.version, require_version(options.first, false));
  return target;
}

Result<VersionInfo> seal_here(Repository& repository, const Target& target,
                              const std::string& new_name) {
  VARVE_TRY_ASSIGN(const VersionInfo info, find_version(repository, target.version));
  VARVE_TRY_ASSIGN(SealOutcome sealed, repository.seal(info.series, info.number, new_name));
  return std::move(sealed.info);
}

/// Where a daemon writes to the repository, it does the work.
Result<VersionInfo> seal(const Target& target, const Options& options) {
  auto repository = open_to_write(target.repository);
  if (repository) {
    auto sealed = seal_here(**repository, target, options.new_name);
    auto closed = (*repository)->close();
    if (sealed && !closed) return std::move(closed).error();
    return sealed;
  }
  if (repository.error().code() != ErrorCode::kLocked) return std::move(repository).error();
  auto daemon = control::Client::connect(target.repository);
  if (!daemon) {
    // Some other command writes, which takes no requests.
    if (daemon.error().code() == ErrorCode::kNotFound) return std::move(repository).error();
    return std::move(daemon).error();
  }
  control::SealRequest request;
  request.version = target.version.series + "/" + target.version.version;
  request.new_name = options.new_name;
  request.wait = options.wait;
  return daemon->seal(request);
}

int run_seal(const Options& options) {
  const auto target = find_target(options);
  if (!target) return fail(target.error());
  const auto sealed = seal(*target, options);
  if (!sealed) return fail(sealed.error());
  print(version_summary(*sealed));
  return kExitOk;
}

}  // namespace

void add_seal_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("seal", "Make an open version immutable and durable");
  command->add_option("REPO", options->first,
                      "Folder of the repository (default: $VARVE_REPO), or a version's path in "
                      "a mount, and nothing else");
  command->add_option("VERSION", options->second, "SERIES/VERSION");
  command->add_option("--as", options->new_name,
                      "The sealed version's name; by default its own, without .partial");
  command->add_flag("--wait", options->wait, "Wait until no program writes to the version");
  command->callback(
      [options, &context] { context.run = [options] { return run_seal(*options); }; });
}

}  // namespace varve::cli
