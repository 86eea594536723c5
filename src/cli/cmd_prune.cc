// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/deletion_output.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/repository_settings_words.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"
#include "varve/retention.h"

namespace varve::cli {
namespace {

struct PruneArguments {
  std::vector<std::string> words;
  KeepRules rules;
  std::string within;
  std::string by;
  bool dry_run = false;
  bool force = false;
  bool force_clock = false;
  bool no_arrange = false;
  bool json = false;
  bool exact = false;
  bool silent = false;  ///< See DeletionFormat.
};

Result<std::vector<VersionNumber>> locked_versions(Repository& repository, SeriesId series,
                                                   const PruneArguments& options,
                                                   const Timestamp& now) {
  VARVE_TRY_ASSIGN(const auto locks, repository.version_locks(series));
  std::vector<VersionNumber> locked;
  for (const VersionLock& lock : locks) {
    const bool holds = options.force_clock ? lock.locked_until > now : lock.holds;
    if (holds) locked.push_back(lock.number);
  }
  return locked;
}

/// Warns first if the prune deletes more than half of a series.
void print_share(const SeriesInfo& series, std::size_t going, std::size_t all,
                 const PruneArguments& options) {
  if (going * 2 <= all) return;
  if (options.json) {
    Json object{{"kind", "more_than_half"}, {"deleted", going}, {"versions", all}};
    put_name(object, "series", series.name);
    print_json("warning", std::move(object));
    return;
  }
  print(fmt::format("{}: these rules delete {} of {} versions, more than half\n",
                    name_text(series.name), going, all));
}

/// Warns about versions that the rules neither count nor delete because of their times.
void print_future(const SeriesInfo& series, const std::vector<PruneDecision>& decisions,
                  const PruneArguments& options) {
  const auto count = std::ranges::count(decisions, true, &PruneDecision::future);
  if (count == 0) return;
  if (options.json) {
    Json object{{"kind", "future"}, {"versions", count}};
    put_name(object, "series", series.name);
    print_json("warning", std::move(object));
    return;
  }
  print(fmt::format(
      "{}: the seal times of {} versions are in the future; check the clock. Until these times no "
      "rule counts or deletes the versions, but `varve rm` can delete them\n",
      name_text(series.name), count));
}

/// The versions to keep and to delete. Versions absent from the repository's object store stay, and
/// count for no rule: a version only on the local disk must not take the place of a replicated
/// version. The first `unreplicated` decisions are about the absent versions.
struct Decisions {
  std::vector<PruneDecision> all{};
  std::size_t unreplicated = 0;
};

Result<Decisions> decide(Repository& repository, const SeriesInfo& series,
                         const PruneArguments& options, const std::vector<VersionId>& missing) {
  const Timestamp now = base::SystemClock().now();
  VARVE_TRY_ASSIGN(auto versions, repository.versions(series.id));
  VARVE_TRY_ASSIGN(const auto damaged, repository.versions_with_losses(series.id));
  for (VersionInfo& version : versions) {
    const bool has_losses = std::ranges::find(damaged, version.number) != damaged.end();
    if (has_losses && version.problems == 0) version.problems = 1;
  }
  VARVE_TRY_ASSIGN(const auto locked, locked_versions(repository, series.id, options, now));
  std::vector<VersionInfo> replicated;
  Decisions decisions;
  for (const VersionInfo& version : versions) {
    const bool lacks = std::ranges::any_of(missing, [&](const VersionId& id) {
      return id.series == series.id && id.number == version.number;
    });
    if (!lacks) replicated.push_back(version);
    if (lacks && version.state == VersionState::kSealed) {
      decisions.all.push_back({version, true, false, {"not replicated"}});
    }
  }
  std::ranges::reverse(decisions.all);
  decisions.unreplicated = decisions.all.size();
  const auto by_rules = decide_prune(replicated, locked, options.rules, now);
  decisions.all.insert(decisions.all.end(), by_rules.begin(), by_rules.end());
  return decisions;
}

void print_unreplicated(const SeriesInfo& series, const Decisions& decisions,
                        const PruneArguments& options) {
  if (decisions.unreplicated == 0) return;
  if (options.json) {
    Json object{{"kind", "not_replicated"}, {"versions", decisions.unreplicated}};
    put_name(object, "series", series.name);
    print_json("warning", std::move(object));
    return;
  }
  print(
      fmt::format("{}: the object store does not have {} of {} versions yet. No rule counts or "
                  "deletes them; `varve wait` uploads them\n",
                  name_text(series.name), decisions.unreplicated, decisions.all.size()));
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : ", ") + reason;
  return text;
}

void print_decisions(const std::vector<PruneDecision>& decisions, const PruneArguments& options) {
  std::vector<std::vector<std::string>> rows;
  for (const PruneDecision& decision : decisions) {
    const VersionInfo& version = decision.version;
    if (options.json) {
      auto object = version_json(version);
      object["action"] = decision.keep ? "keep" : "delete";
      object["dry_run"] = options.dry_run;
      object["reasons"] = decision.reasons;
      print_json("version", std::move(object));
      continue;
    }
    rows.push_back({decision.keep     ? "keep"
                    : options.dry_run ? "would delete"
                                      : "delete",
                    name_text(version.series_name + "/" + version.name),
                    time_text(options.rules.by_claimed ? data_time(version) : version.sealed_at),
                    decision.keep ? joined(decision.reasons) : "no rule keeps it"});
  }
  print(table(rows, "llll"));
}

struct Outcome {
  bool changed = false;  ///< Versions were deleted.
  bool held = false;     ///< Versions were held although no rule keeps the versions.
};

Result<Outcome> prune_series(control::RepositoryControl& control, const SeriesInfo& series,
                             const PruneArguments& options, const std::vector<VersionId>& missing,
                             std::vector<VersionKey>& deleted) {
  VARVE_TRY_ASSIGN(Repository* const repository, control.view());
  auto decided = decide(*repository, series, options, missing);
  if (!decided) return std::move(decided).error();
  const auto& decisions = decided->all;
  std::vector<VersionNumber> going;
  for (const PruneDecision& decision : decisions) {
    if (!decision.keep) going.push_back(decision.version.number);
  }
  if (!options.silent) {
    print_share(series, going.size(), decisions.size(), options);
    print_future(series, decisions, options);
    print_unreplicated(series, *decided, options);
  }
  const auto first = decisions.begin() + static_cast<std::ptrdiff_t>(decided->unreplicated);
  if (!options.force) VARVE_TRY(check_prune({first, decisions.end()}));
  if (!options.silent) print_decisions(decisions, options);
  DeletionForecast outcome;
  if (!going.empty()) {
    // The list appears on the screen before the deletion starts.
    VARVE_TRY(finish_output());
    const DeletionOptions how{.skip_held = true,
                              .force = options.force,
                              .force_clock = options.force_clock,
                              .deleted_before = deleted};
    VARVE_TRY_ASSIGN(outcome, control.remove({.series = series.name,
                                              .versions = going,
                                              .forecast_only = options.dry_run,
                                              .options = how}));
  }
  for (const auto number : outcome.versions) deleted.push_back({series.id, number});
  const DeletionFormat format{options.dry_run, options.json, options.exact, options.silent};
  print_held(series, outcome, format);
  print_deletion(series, outcome, format);
  return Outcome{!options.dry_run && !outcome.versions.empty(), !outcome.held.empty()};
}

/// Fills in the rules of `varve config` if the command line has no rules.
Result<void> add_stored_rules(control::RepositoryControl& control, PruneArguments& options,
                              const Context& context) {
  const auto stored = control.upkeep({});
  // A daemon of an older Varve has no stored rules.
  if (!stored && stored.error().code() != ErrorCode::kUnsupported) return stored.error();
  const KeepRules rules = stored ? stored->keep : KeepRules();
  if (options.by.empty()) options.rules.by_claimed = rules.by_claimed;
  if (options.rules.any()) return {};
  if (!rules.any()) {
    return usage_error(
        "no rule is given; give at least one, such as --keep-last 7, or set some with `varve "
        "config REPO keep-last=7`");
  }
  const bool by_claimed = options.rules.by_claimed;
  options.rules = rules;
  options.rules.by_claimed = by_claimed;
  if (!options.json) note(context, "the rules of the repository are: " + rules_text(options.rules));
  return {};
}

/// Returns true if all versions without a rule to keep were deleted.
Result<bool> prune(PruneArguments options, const Context& context) {
  if (!options.within.empty()) {
    VARVE_TRY_ASSIGN(options.rules.within_seconds, parse_duration(options.within));
  }
  options.rules.by_claimed = options.by != "sealed";
  options.silent = is_silent(context, options.dry_run, options.json);
  VARVE_TRY_ASSIGN(NamedPlaces named,
                   find_places(options.words, {.purpose = control::Purpose::kChange}));
  add_series_of(context.instance, named);
  OwedArranging owed(!options.dry_run && !options.no_arrange, context);
  VARVE_TRY_ASSIGN(const auto folder, repository_at(named.repository, control::Purpose::kLook));
  // Before opening the repository, because a process can open a catalog only once at a time.
  // Versions replicated meanwhile stay, too.
  std::vector<VersionId> missing;
  control::LockWait lock = lock_wait_to_view(control::kTurnMax);
  lock.prepare = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(missing, RemoteFolder(folder, is_trusted(folder)).unreplicated_versions());
    return {};
  };
  VARVE_TRY_ASSIGN(const auto control, open_control(named.repository,
                                                    options.dry_run ? control::Purpose::kLook
                                                                    : control::Purpose::kChange,
                                                    owed.waits(), lock));
  VARVE_TRY(add_stored_rules(*control, options, context));
  VARVE_TRY_ASSIGN(Repository* const repository, control->view());
  VARVE_TRY_ASSIGN(const auto all, find_series(*repository, named.places));
  // A failure in one series, such as an open file, does not stop the prune of the next series.
  Result<void> first_failure;
  std::vector<std::string> changed;
  std::vector<VersionKey> deleted;
  bool held = false;
  for (const SeriesInfo& series : all) {
    auto pruned = prune_series(*control, series, options, missing, deleted);
    if (pruned) {
      if (pruned->changed) changed.push_back(series.name);
      held = held || pruned->held;
      continue;
    }
    auto failure = std::move(pruned).error().with_context(series.name);
    if (first_failure) {
      first_failure = std::move(failure);
    } else {
      (void)fail(failure);
    }
  }
  owed.run(*control, changed);
  auto closed = control->close();
  VARVE_TRY(first_failure);
  VARVE_TRY(closed);
  return !held;
}

int run_prune(const PruneArguments& options, const Context& context) {
  const auto pruned = prune(options, context);
  if (!pruned) return fail(pruned.error());
  return *pruned ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_prune_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<PruneArguments>();
  auto command = line.add_command(
      "prune",
      "Delete the sealed versions that no rule keeps; rules use the time of a version's data");
  command.add_places(options->words, "SERIES, one or more (default: all)");
  KeepRules& rules = options->rules;
  command.add_option("--keep-last", rules.last, "Number of newest versions to keep");
  command.add_option("--keep-hourly", rules.hourly,
                     "Number of last hours with versions; keeps the newest of each");
  command.add_option("--keep-daily", rules.daily, "The same for days");
  command.add_option("--keep-weekly", rules.weekly, "The same for weeks, which begin on Monday");
  command.add_option("--keep-monthly", rules.monthly, "The same for months");
  command.add_option("--keep-yearly", rules.yearly, "The same for years");
  command.add_option("--keep-within", options->within,
                     "Keep versions sealed at most this time before the newest one: 12h, 30d, 2w, "
                     "6m, 1y, or a sum such as 1y6m");
  command
      .add_option("--by", options->by,
                  "The time that the rules use: the claimed time of versions that have one that is "
                  "not after their seal (default), or that of the seal alone")
      .one_of({"sealed", "claimed"})
      .type_name("sealed|claimed");
  command.add_flag("-n,--dry-run", options->dry_run,
                   "Delete nothing; print the versions that would be deleted and those that would "
                   "stay, with reasons");
  add_force_flags(command, options->force, options->force_clock,
                  "; also delete if only versions of the future and empty ones would stay");
  add_no_arrange_flag(command, options->no_arrange);
  command.add_json_flag(options->json, "the versions, then the sums of each series");
  command.add_bytes_flag(options->exact);
  command.add_alias("forget");
  command.run([options, &context] { return run_prune(*options, context); });
}

}  // namespace varve::cli
