// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/command.h"
#include "control/unmount.h"

namespace varve::cli {
namespace {

int run_umount(const std::string& directory, const Context& context) {
  const auto outcome = control::unmount(directory);
  if (!outcome) return fail(outcome.error());
  if (outcome->daemon_was_dead) {
    note(context, fmt::format("{}: the daemon had died; its mount point is free again. Open "
                              "versions go on where the last checkpoint left them",
                              outcome->mount_point));
  }
  return kExitOk;
}

}  // namespace

void add_umount_command(CLI::App& app, Context& context) {
  auto directory = std::make_shared<std::string>();
  auto* command = app.add_subcommand(
      "umount", "Unmount a repository; returns when its daemon has written everything");
  command->add_option("DIR", *directory, "The mount point, or the mounted repository")->required();
  command->callback([directory, &context] {
    context.run = [directory, &context] { return run_umount(*directory, context); };
  });
}

}  // namespace varve::cli
