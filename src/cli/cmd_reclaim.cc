// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "varve/remote_folder.h"

namespace varve::cli {
namespace {

struct ReclaimArguments {
  std::string repository;
  std::string after = "30d";
  bool json = false;
};

int run_reclaim(ReclaimArguments options, const Context& context) {
  if (const auto given = take_repository({{"REPO", &options.repository}}); !given) {
    return fail(given.error());
  }
  const auto after = parse_duration(options.after);
  if (!after) return fail(after.error());
  auto how = options_to_write(options.repository);
  how.read_only = true;
  const auto done = control::open_when_unlocked(options.repository, lock_wait(), [&] {
    return RemoteFolder(options.repository).reclaim(how, static_cast<std::int64_t>(*after));
  });
  if (!done) return fail(done.error());
  if (options.json) {
    print_json("reclaim_summary", {{"removed_objects", done->removed_objects},
                                   {"removed_heads", done->removed_heads},
                                   {"noted_objects", done->noted_objects}});
  } else if (!context.quiet) {
    print(fmt::format("{} objects and {} heads removed; {} more objects can be removed later\n",
                      done->removed_objects, done->removed_heads, done->noted_objects));
  }
  return kExitOk;
}

}  // namespace

void add_reclaim_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<ReclaimArguments>();
  auto command = line.add_command(
      "reclaim", "Remove objects that a repository in an object store does not need");
  command.add_repository(options->repository);
  command
      .add_option("--after", options->after,
                  "How long an object must have been without use (default: 30d)")
      .type_name("DURATION");
  command.add_json_flag(options->json, "the counts");
  command.run([options, &context] { return run_reclaim(*options, context); });
}

}  // namespace varve::cli
