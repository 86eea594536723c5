// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "cli/known_damage.h"
#include "cli/output.h"
#include "varve/copy_name.h"

namespace varve::cli {
namespace {

// Less free space is a warning, or critical.
constexpr std::uint64_t kWarnBelowPercent = 5;
constexpr std::uint64_t kCriticalBelowPercent = 1;
// Clocks of two machines may differ by this much.
constexpr std::int64_t kClockToleranceS = 300;
// A series with less to arrange needs no attention.
constexpr std::uint64_t kDebtBytesMin = std::uint64_t{64} << 20;

void add_age_concerns(const SeriesStatus& series, const Timestamp& now, const StatusLimits& limits,
                      std::vector<Concern>& concerns) {
  const std::string name = printable(series.name);
  if (series.newest && series.newest->sealed_at.seconds > now.seconds + kClockToleranceS) {
    concerns.push_back(
        {Health::kWarning,
         fmt::format("{}/{} was sealed in the future, {}; check the clock", name,
                     printable(series.newest->name), time_text(series.newest->sealed_at))});
  }
  if (!limits.age_s) return;
  if (!series.newest) {
    concerns.push_back({Health::kCritical, name + " has no sealed version"});
  } else if (const auto age = seconds_since(data_time(*series.newest), now); age > *limits.age_s) {
    concerns.push_back({Health::kCritical,
                        fmt::format("the newest version of {} is {} old", name, age_text(age))});
  }
  for (const VersionInfo& version : series.open) {
    const auto age = seconds_since(version.opened_at, now);
    if (age <= *limits.age_s) continue;
    concerns.push_back({Health::kWarning,
                        fmt::format("{}/{} has been open for {}; {}, or drop it with `varve rm`",
                                    name, printable(version.name), age_text(age),
                                    is_receiving_name(version.name)
                                        ? "run `varve copy` again"
                                        : "run the interrupted command again, seal it as it is")});
  }
}

// The series gets no new versions until the user looks at the source.
void add_refusal_concern(const SeriesStatus& series, std::vector<Concern>& concerns) {
  if (!series.refused) return;
  concerns.push_back(
      {Health::kCritical,
       fmt::format("the store into {} was refused on {}, because the source {}; check that the "
                   "source is mounted and complete, then store again",
                   printable(series.name), time_text(series.refused->at),
                   series.refused->reason == RefusalReason::kEmpty
                       ? "was empty"
                       : "had lost most of its content")});
}

void add_debt_concern(const SeriesStatus& series, std::vector<Concern>& concerns) {
  const std::uint64_t owed = series.debt.dead_bytes + series.debt.departing_bytes;
  if (owed < kDebtBytesMin || owed <= series.debt.active_bytes / 2) return;
  concerns.push_back(
      {Health::kWarning, fmt::format("{} of {} are to be arranged; run `varve arrange`",
                                     size_text(owed, false), printable(series.name))});
}

void add_check_concerns(const RepositoryStatus& status, const StatusLimits& limits,
                        std::vector<Concern>& concerns) {
  for (const EarlierCheck& check : status.checks) {
    if (check.damages == 0) continue;
    if (check.ended_at == 0) {
      concerns.push_back({Health::kCritical,
                          "the record of earlier checks is damaged, and may have told of damage; "
                          "run `varve check --read-data`"});
      continue;
    }
    const char* again =
        check.depth == CheckDepth::kChunks ? "varve check --read-data" : "varve check";
    concerns.push_back(
        {Health::kCritical,
         fmt::format("the check of {} found {} damaged {}; run `{}`, then `varve repair`",
                     time_text({check.ended_at, 0}), check.damages,
                     check.damages == 1 ? "place" : "places", again)});
  }
  if (!limits.check_age_s) return;
  const EarlierCheck* const newest = newest_data_check(status.checks);
  if (newest == nullptr) {
    concerns.push_back({Health::kWarning, "no check has read all data; run `varve scrub`"});
  } else if (const auto age = seconds_since({newest->ended_at, 0}, status.now);
             age > *limits.check_age_s) {
    concerns.push_back(
        {Health::kWarning,
         fmt::format("the last check of all data was {} ago; run `varve scrub`", age_text(age))});
  }
}

void add_space_concern(const SpaceInfo& space, const StatusLimits& limits,
                       std::vector<Concern>& concerns) {
  const std::uint64_t free = space.available_bytes();
  Health health = Health::kOk;
  if (free < limits.free_bytes || space.blocks_available < space.blocks / 100 * kWarnBelowPercent) {
    health = Health::kWarning;
  }
  if (space.blocks_available < space.blocks / 100 * kCriticalBelowPercent) {
    health = Health::kCritical;
  }
  if (health == Health::kOk) return;
  concerns.push_back({health, fmt::format("{} of the disk are free; delete versions with `varve "
                                          "prune`, or enlarge the disk",
                                          size_text(free, false))});
}

}  // namespace

const char* name_of(Health health) {
  if (health == Health::kOk) return "OK";
  return health == Health::kWarning ? "WARNING" : "CRITICAL";
}

const char* name_of(RefusalReason reason) {
  return reason == RefusalReason::kEmpty ? "empty" : "shrunk";
}

std::uint64_t seconds_since(const Timestamp& time, const Timestamp& now) {
  // `now` comes from a clock, and `time` may come from a file: the difference may be out of range.
  std::int64_t seconds = 0;
  if (__builtin_sub_overflow(now.seconds, time.seconds, &seconds)) seconds = 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
}

std::string age_text(std::uint64_t seconds) {
  struct Unit {
    std::uint64_t seconds;
    const char* name;
  };
  constexpr std::array kUnits{Unit{86400, "days"}, Unit{3600, "h"}, Unit{60, "min"}};
  for (const Unit& unit : kUnits) {
    if (seconds >= 2 * unit.seconds) return fmt::format("{} {}", seconds / unit.seconds, unit.name);
  }
  return fmt::format("{} s", seconds);
}

std::string checks_text(const std::vector<EarlierCheck>& checks, const Timestamp& now) {
  if (checks.empty()) return "never";
  std::string text;
  for (const EarlierCheck& check : checks) {
    if (!text.empty()) text += "; ";
    text += fmt::format(
        "{} {} ago: {}", name_of(check.depth), age_text(seconds_since({check.ended_at, 0}, now)),
        check.damages == 0 ? std::string("no damage") : fmt::format("{} damaged", check.damages));
  }
  return text;
}

const EarlierCheck* newest_data_check(const std::vector<EarlierCheck>& checks) {
  const EarlierCheck* newest = nullptr;
  for (const EarlierCheck& check : checks) {
    if (check.depth == CheckDepth::kStructure) continue;
    if (newest == nullptr || check.ended_at >= newest->ended_at) newest = &check;
  }
  return newest;
}

namespace {

// A check of a folder in an object store always checks the objects, too.
void add_store_check_concerns(const RepositoryStatus& status, const StatusLimits& limits,
                              std::vector<Concern>& concerns) {
  const auto& store = *status.replication;
  std::int64_t newest_at = 0;
  for (const EarlierCheck& check : store.checks) {
    newest_at = std::max(newest_at, check.ended_at);
    if (check.damages == 0) continue;
    const bool was_read = check.depth != CheckDepth::kStructure;
    const char* how = was_read ? " --read-store" : "";
    const auto what = check.ended_at == 0
                          ? "the record of checks of " + store.place + " is damaged"
                          : fmt::format("the check of {} found {} damaged {} in {}",
                                        time_text({check.ended_at, 0}), check.damages,
                                        check.damages == 1 ? "object" : "objects", store.place);
    concerns.push_back(
        {Health::kCritical,
         store.reads_only
             ? fmt::format("{}; run `varve repair{}` in the folder that writes, then `varve "
                           "check{}` here",
                           what, how, how)
             : fmt::format("{}; run `varve repair{}`, then `varve check{}`", what, how, how)});
  }
  if (!limits.check_age_s) return;
  const auto age = seconds_since({newest_at, 0}, status.now);
  if (age <= *limits.check_age_s) return;
  concerns.push_back(
      {Health::kWarning,
       newest_at == 0 ? fmt::format("no check has compared the objects in {}; run `varve check "
                                    "--quick`",
                                    store.place)
                      : fmt::format("the last check of the objects in {} was {} ago; run `varve "
                                    "check --quick`",
                                    store.place, age_text(age))});
}

// Varve extends locks when less than half of their length is left, so an eighth is late.
void add_store_concerns(const ReplicationInfo& store, const Timestamp& now,
                        std::vector<Concern>& concerns) {
  for (const auto& ability : store.abilities) {
    if (ability.name != "conditional requests" || ability.value == "honoured") continue;
    concerns.push_back({Health::kCritical, store.place +
                                               " does not honour conditional requests: two writers "
                                               "could harm each other"});
  }
  if (store.lock_days == 0) return;
  const auto late = std::int64_t{store.lock_days} * 86400 / 8;
  if (store.locks_end.seconds >= now.seconds + late) return;
  concerns.push_back(
      {Health::kWarning,
       store.locks_end.seconds == 0
           ? fmt::format("not all objects in {} are locked; `varve wait` locks more", store.place)
           : fmt::format("locks of objects in {} end on {}; `varve wait` extends them", store.place,
                         time_text(store.locks_end))});
}

// Attached machines see the former state until the upload. A removed key is the gravest change.
void add_change_concerns(const UnreplicatedChanges& changes, const ReplicationInfo& store,
                         std::vector<Concern>& concerns) {
  const bool fenced = !store.fenced.empty();
  if (changes.keys) {
    concerns.push_back(
        {Health::kWarning,
         fmt::format("a change of the keys is {}, where the former keys open the repository{}",
                     fenced ? "only in this folder, and not in " + store.place
                            : "not in " + store.place + " yet",
                     fenced ? "" : "; `varve wait` uploads it")});
  }
  if (fenced) return;
  if (changes.settings) {
    concerns.push_back(
        {Health::kWarning,
         fmt::format("changes of settings are not in {} yet; `varve wait` uploads them",
                     store.place)});
  }
  if (changes.deleted_versions != 0) {
    const bool one = changes.deleted_versions == 1;
    concerns.push_back({Health::kWarning,
                        fmt::format("{} deleted {} still in {}; `varve wait` uploads the {}",
                                    changes.deleted_versions, one ? "version is" : "versions are",
                                    store.place, one ? "deletion" : "deletions")});
  }
}

// Another writer is the worst state: no later data reaches the store.
void add_replication_concern(const RepositoryStatus& status, const StatusLimits& limits,
                             std::vector<Concern>& concerns) {
  if (!status.replication) return;
  // The objects are those of the folder that took over, which repairs them.
  if (status.replication->fenced.empty()) add_store_check_concerns(status, limits, concerns);
  if (!status.replication->fenced.empty()) {
    concerns.push_back({Health::kCritical, status.replication->fenced + ". " +
                                               how_to_write_again(status.replication->place)});
  }
  if (const auto& failure = status.replication->failure;
      failure && status.replication->fenced.empty()) {
    concerns.push_back({Health::kCritical,
                        fmt::format("the upload to {} failed on {}: {}", status.replication->place,
                                    time_text(failure->at), failure->message)});
  }
  add_store_concerns(*status.replication, status.now, concerns);
  add_change_concerns(status.changes, *status.replication, concerns);
  std::uint64_t missing = 0;
  for (const SeriesStatus& series : status.series) missing += series.unreplicated;
  if (missing == 0) return;
  if (!status.replication->fenced.empty()) {
    concerns.push_back(
        {Health::kWarning, fmt::format("{} {} only in this folder; `varve copy` brings {} into "
                                       "another repository",
                                       missing, missing == 1 ? "version is" : "versions are",
                                       missing == 1 ? "it" : "them")});
    return;
  }
  concerns.push_back(
      {Health::kWarning, fmt::format("{} {} not in {} yet; `varve wait` uploads {}", missing,
                                     missing == 1 ? "version is" : "versions are",
                                     status.replication->place, missing == 1 ? "it" : "them")});
}

void add_incomplete_concern(const SeriesStatus& series, std::vector<Concern>& concerns) {
  if (!series.newest || series.newest->problems == 0) return;
  concerns.push_back(
      {Health::kWarning,
       fmt::format("the newest version of {}, {}, is incomplete: {}", printable(series.name),
                   printable(series.newest->name), problems_text(series.newest->problems))});
}

// Losses in the newest version are the worst, because the next store does not bring the data back.
void add_loss_concern(const SeriesStatus& series, std::vector<Concern>& concerns) {
  if (series.versions_with_losses == 0) return;
  const bool in_newest = series.newest && series.newest->name == series.lost_version;
  auto text =
      fmt::format("{} {} of {} {} lost content", series.versions_with_losses,
                  series.versions_with_losses == 1 ? "version" : "versions", printable(series.name),
                  series.versions_with_losses == 1 ? "has" : "have");
  if (series.lost.files != 0) {
    text += fmt::format(", {} in {}", lost_files_text(series.lost), printable(series.lost_version));
  }
  concerns.push_back({in_newest ? Health::kCritical : Health::kWarning, text + "; " + kHowToHeal});
}

}  // namespace

Result<void> look_at_losses(Repository& repository, SeriesId series, SeriesStatus& status) {
  VARVE_TRY_ASSIGN(const auto affected, repository.versions_with_losses(series));
  status.versions_with_losses = affected.size();
  if (affected.empty()) return {};
  VARVE_TRY_ASSIGN(const auto versions, repository.versions(series));
  for (const VersionInfo& version : versions) {
    if (version.number == affected.back()) status.lost_version = version.name;
  }
  // The check of the structure reports a damaged tree.
  auto lost = repository.lost_files(series, affected.back());
  if (lost) status.lost = *std::move(lost);
  return {};
}

std::vector<Concern> find_concerns(const RepositoryStatus& status, const StatusLimits& limits) {
  std::vector<Concern> concerns;
  if (status.has_older_catalog) {
    concerns.push_back(
        {Health::kCritical,
         "the catalog is older than the rest of the repository, or of another copy, so versions "
         "are not shown; restore the newest copy of the repository, or run `varve "
         "repair`"});
  }
  add_check_concerns(status, limits, concerns);
  for (const SeriesStatus& series : status.series) {
    add_age_concerns(series, status.now, limits, concerns);
    add_refusal_concern(series, concerns);
    add_debt_concern(series, concerns);
    add_loss_concern(series, concerns);
    add_incomplete_concern(series, concerns);
  }
  add_replication_concern(status, limits, concerns);
  add_space_concern(status.space, limits, concerns);
  std::ranges::stable_sort(concerns, std::ranges::greater(), &Concern::health);
  return concerns;
}

}  // namespace varve::cli
