// SPDX-License-Identifier: Apache-2.0

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"

namespace varve::cli {

void add_version_command(CommandLine& line, const Context& /*context*/) {
  auto command = line.add_command("version", "Print the version of this program");
  command.run([] {
    print("varve " VARVE_VERSION "\n");
    return kExitOk;
  });
}

}  // namespace varve::cli
