// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "control/named_version.h"

namespace varve::cli {
namespace {

struct WaitArguments {
  std::vector<std::string> words;
  bool json = false;
};

/// Returns the versions named by the words; without names, all sealed versions.
Result<std::vector<VersionInfo>> find_versions(const NamedPlaces& named) {
  std::vector<VersionInfo> versions;
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(named.repository));
  for (const VersionPath& place : named.places) {
    VARVE_TRY_ASSIGN(VersionInfo version, find_whole_version(*repository, place));
    if (version.state != VersionState::kSealed) {
      return control::version_is_open(version.series_name + "/" + version.name);
    }
    versions.push_back(std::move(version));
  }
  if (!named.places.empty()) return versions;
  VARVE_TRY_ASSIGN(const auto all, repository->series());
  for (const SeriesInfo& series : all) {
    VARVE_TRY_ASSIGN(const auto of_series, repository->versions(series.id));
    for (const VersionInfo& version : of_series) {
      if (version.state == VersionState::kSealed) versions.push_back(version);
    }
  }
  return versions;
}

Result<void> wait(const WaitArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const NamedPlaces named, find_places(options.words, {}));
  VARVE_TRY_ASSIGN(const auto versions, find_versions(named));
  const StoreWaits waits{.shows_progress = !context.quiet};
  for (const VersionInfo& version : versions) {
    const auto waited = wait_for_replication(named.repository, version, waits, {});
    // Another process may delete versions meanwhile.
    const bool is_gone = !waited && waited.error().code() == ErrorCode::kNotFound;
    if (is_gone && named.places.empty()) continue;
    if (!waited) return waited;
    if (options.json) print_json("version", version_json(version));
  }
  return named.places.empty() ? wait_for_changes(named.repository, waits) : Result<void>();
}

int run_wait(const WaitArguments& options, const Context& context) {
  const auto waited = wait(options, context);
  return waited ? kExitOk : fail(waited.error());
}

}  // namespace

void add_wait_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<WaitArguments>();
  auto command = line.add_command("wait", "Wait until the object store has versions and changes");
  command.add_places(options->words, "SERIES/VERSION, one or more; all versions if none is given");
  command.add_json_flag(options->json, "the versions");
  command.run([options, &context] { return run_wait(*options, context); });
}

}  // namespace varve::cli
