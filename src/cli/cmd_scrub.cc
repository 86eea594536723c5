// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/check_in_parts.h"
#include "cli/command.h"
#include "cli/options.h"

namespace varve::cli {

void add_scrub_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<PartOptions>();
  auto command =
      line.add_command("scrub", "Read and compare all data, from where the last run stopped");
  command.add_repository(options->repository);
  command.add_option("--rate", options->rate,
                     "Maximum number of bytes per second to read, such as 50M");
  command.add_option("--for", options->time, "Stop after this time, such as 6h");
  command.add_flag("--restart,--anew", options->restart,
                   "Begin at the start, not where the last run stopped");
  command.add_json_flag(options->json, "the results");
  command.add_progress_flag(options->progress);
  command.run([options, &context] { return check_in_parts(*options, context); });
}

}  // namespace varve::cli
