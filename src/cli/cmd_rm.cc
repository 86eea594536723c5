// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/deletion_output.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/repository_access.h"
#include "control/open_versions.h"

namespace varve::cli {
namespace {

struct RmArguments {
  std::vector<std::string> words;
  bool dry_run = false;
  bool force = false;
  bool force_clock = false;
  bool no_arrange = false;
  bool json = false;
  bool exact = false;
};

/// The versions of a series to remove, in a single step.
struct Removal {
  SeriesInfo series;
  std::vector<VersionInfo> versions;  ///< Sealed versions.
  std::vector<VersionInfo> open;
  [[nodiscard]] std::vector<VersionNumber> numbers() const {
    std::vector<VersionNumber> all;
    for (const VersionInfo& version : versions) all.push_back(version.number);
    return all;
  }
};

Result<std::vector<Removal>> resolve(Repository& repository,
                                     const std::vector<VersionPath>& places) {
  control::OpenVersions open_versions(repository);
  std::vector<Removal> removals;
  for (const VersionPath& place : places) {
    VARVE_TRY_ASSIGN(VersionInfo version, find_any_version(repository, open_versions, place));
    auto removal = std::ranges::find(removals, version.series,
                                     [](const Removal& other) { return other.series.id; });
    if (removal == removals.end()) {
      VARVE_TRY_ASSIGN(SeriesInfo series, repository.find_series(version.series_name));
      removals.push_back({std::move(series), {}, {}});
      removal = removals.end() - 1;
    }
    if (version.state == VersionState::kOpen) {
      if (removal->open.empty()) removal->open.push_back(std::move(version));
      continue;
    }
    const auto numbers = removal->numbers();
    const bool twice = std::ranges::find(numbers, version.number) != numbers.end();
    if (!twice) removal->versions.push_back(std::move(version));
  }
  for (Removal& removal : removals) {
    std::ranges::sort(removal.versions, {}, &VersionInfo::number);
  }
  return removals;
}

/// Drops an open version.
Result<void> drop(control::RepositoryControl& control, const SeriesInfo& series,
                  VersionNumber number) {
  auto dropped = control.remove({.series = series.name, .versions = {number}, .discard = true});
  if (!dropped) return std::move(dropped).error().with_context(series.name);
  return {};
}

/// Returns true if every version was removed. Sets `any` if at least one version was removed.
Result<bool> remove(const RmArguments& options, const Context& context, bool& any) {
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(options.words, {.least = 1, .purpose = control::Purpose::kChange}));
  OwedArranging owed(!options.dry_run && !options.no_arrange, context);
  VARVE_TRY_ASSIGN(const auto control, open_control(named.repository,
                                                    options.dry_run ? control::Purpose::kLook
                                                                    : control::Purpose::kChange,
                                                    owed.waits(), lock_wait_to_view()));
  VARVE_TRY_ASSIGN(Repository* const repository, control->view());
  VARVE_TRY_ASSIGN(const auto removals, resolve(*repository, named.places));
  std::vector<std::string> changed;
  bool held = false;
  std::vector<VersionKey> deleted;
  const DeletionFormat format{options.dry_run, options.json, options.exact,
                              is_silent(context, options.dry_run, options.json)};
  for (const Removal& removal : removals) {
    for (const VersionInfo& version : removal.open) {
      if (!options.dry_run) VARVE_TRY(drop(*control, removal.series, version.number));
      print_discarded(version, format);
    }
    any = any || !removal.open.empty();
    if (removal.versions.empty()) continue;
    const DeletionOptions how{.skip_held = true,
                              .force = options.force,
                              .force_clock = options.force_clock,
                              .deleted_before = deleted};
    auto outcome = control->remove({.series = removal.series.name,
                                    .versions = removal.numbers(),
                                    .forecast_only = options.dry_run,
                                    .options = how});
    if (!outcome) return std::move(outcome).error().with_context(removal.series.name);
    for (const VersionInfo& version : removal.versions) {
      const bool goes =
          std::ranges::find(outcome->versions, version.number) != outcome->versions.end();
      if (goes) print_deleted(version, format);
    }
    for (const auto number : outcome->versions) deleted.push_back({removal.series.id, number});
    print_held(removal.series, *outcome, format);
    held = held || !outcome->held.empty();
    if (outcome->versions.empty()) continue;
    print_deletion(removal.series, *outcome, format);
    changed.push_back(removal.series.name);
  }
  owed.run(*control, changed);
  any = any || !changed.empty();
  VARVE_TRY(control->close());
  return !held;
}

int run_rm(const RmArguments& options, const Context& context) {
  bool any = false;
  const auto removed = remove(options, context, any);
  if (!removed) return fail(removed.error());
  if (*removed) return kExitOk;
  return any ? kExitIncomplete : kExitError;
}

}  // namespace

void add_rm_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<RmArguments>();
  auto command = line.add_command("rm", "Delete versions, and free their space at once");
  command.add_places(options->words, "SERIES/VERSION, one or more");
  command.add_flag("-n,--dry-run", options->dry_run,
                   "Delete nothing; print the versions that would be deleted");
  add_force_flags(command, options->force, options->force_clock);
  add_no_arrange_flag(command, options->no_arrange);
  command.add_json_flag(options->json, "the versions, then the sums of each series");
  command.add_bytes_flag(options->exact);
  command.run([options, &context] { return run_rm(*options, context); });
}

}  // namespace varve::cli
