// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "control/unmount.h"

namespace varve::cli {
namespace {

struct UmountArguments {
  std::string directory;
  bool force = false;
};

int run_umount(UmountArguments options, const Context& context) {
  if (options.directory.empty()) options.directory = context.instance.value("VARVE_MOUNT");
  if (options.directory.empty()) {
    return fail(usage_error("DIR is missing; give the mount point, or the mounted repository"));
  }
  const auto mode = options.force ? control::UnmountMode::kForce : control::UnmountMode::kSafe;
  const auto outcome = control::unmount(options.directory, mode);
  if (!outcome) return fail(outcome.error());
  if (outcome->daemon_was_dead) {
    note(context, fmt::format("{}: the daemon had died; the mount point is free again. Open "
                              "versions continue from their last checkpoint",
                              outcome->mount_point));
  }
  return kExitOk;
}

}  // namespace

void add_umount_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<UmountArguments>();
  auto command = line.add_command(
      "umount", "Unmount a repository, and wait until its daemon has written everything");
  command.add_option("DIR", options->directory, "The mount point, or the mounted repository");
  command.add_flag("--force", options->force,
                   "Unmount even if open versions lose data that is not on disk");
  command.add_alias("unmount");
  command.run([options, &context] { return run_umount(*options, context); });
}

}  // namespace varve::cli
