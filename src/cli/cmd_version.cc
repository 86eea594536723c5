// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/output.h"

namespace varve::cli {

void add_version_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("version", "Print the version of this program");
  command->callback([&context] {
    context.run = [] {
      print("varve " VARVE_VERSION "\n");
      return kExitOk;
    };
  });
}

}  // namespace varve::cli
