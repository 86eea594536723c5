// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/check_in_parts.h"
#include "cli/command.h"
#include "cli/options.h"

namespace varve::cli {

void add_scrub_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<PartOptions>();
  auto command =
      line.add_command("scrub", "Read and compare all data, going on where the last run stopped");
  command.add_option("REPO", options->repository, kRepositoryHelp);
  command.add_option("--rate", options->rate, "Bytes a second to read at most, such as 50M");
  command.add_option("--for", options->time, "Stop after this time, such as 6h");
  command.add_flag("--restart,--anew", options->restart,
                   "Begin at the start, wherever the last run stopped");
  command.add_flag("--json", options->json, "Results as JSON lines");
  command.add_flag("--progress", options->progress, "Show progress even if not on a terminal");
  command.run([options, &context] { return check_in_parts(*options, context); });
}

}  // namespace varve::cli
