// SPDX-License-Identifier: Apache-2.0
// Copies series after series. In each series: renames first, so new versions find free names; then
// the missing versions, oldest first; locks; files beside versions; deletions last.
#include "copy/copier.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "copy/beside_files.h"
#include "copy/change_lister.h"
#include "copy/version_names.h"
#include "varve/browse.h"
#include "varve/copy_name.h"
#include "varve/retention.h"

namespace varve::copy {
namespace {

std::string path_text(const std::string& series, const std::string& version) {
  return series + "/" + version;
}

/// Returns whether only one series failed, and the remaining series can still be copied.
bool concerns_series(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInterrupted:
    case ErrorCode::kNoSpace:
    case ErrorCode::kUnavailable:
    case ErrorCode::kReadOnly:
    case ErrorCode::kIo:
      return false;
    default:
      return true;
  }
}

const TargetVersion* copy_of(const std::vector<TargetVersion>& copies,
                             const VersionInfo& original) {
  const auto found = std::ranges::find_if(copies, [&](const TargetVersion& copy) {
    return copy.origin && copy.origin->number == original.number;
  });
  return found == copies.end() ? nullptr : &*found;
}

const VersionInfo* original_of(const std::vector<VersionInfo>& originals,
                               const TargetVersion& copy) {
  const auto found = std::ranges::find(originals, copy.origin->number, &VersionInfo::number);
  return found == originals.end() ? nullptr : &*found;
}

/// Returns whether an unfinished copy was sealed by another command. The sealed copy counts as a
/// version of the target's own, and the copier does not touch the version.
bool is_sealed_remnant(const TargetVersion& version) {
  return version.is_sealed && !version.origin && is_receiving_name(version.name);
}

}  // namespace

bool Copier::advance(std::uint64_t bytes) {
  progress_.bytes_done += bytes;
  return !observer_.progress || observer_.progress(progress_);
}

void Copier::tell(const CopyEvent& event) const {
  if (observer_.done) observer_.done(event);
}

Result<CopyReport> Copier::run() {
  VARVE_TRY_ASSIGN(const auto all, chosen_series());
  VARVE_TRY(read_target());
  for (const SeriesInfo& series : all) {
    auto copied = copy_series(series);
    if (copied) continue;
    if (!concerns_series(copied.error())) {
      return std::move(copied).error().with_context(series.name);
    }
    report_.problems.push_back(series.name + ": " + copied.error().message());
  }
  if (target_ != nullptr && !options_.dry_run) VARVE_TRY(target_->finish());
  return std::move(report_);
}

Result<std::vector<SeriesInfo>> Copier::chosen_series() {
  VARVE_TRY_ASSIGN(const auto all, source_.series());
  if (options_.series.empty()) return all;
  std::vector<SeriesInfo> chosen;
  for (const std::string& name : options_.series) {
    const auto found = std::ranges::find(all, name, &SeriesInfo::name);
    if (found == all.end()) {
      return Error(ErrorCode::kNotFound, "the source has no series called " + name);
    }
    if (std::ranges::find(chosen, found->id, &SeriesInfo::id) == chosen.end()) {
      chosen.push_back(*found);
    }
  }
  return chosen;
}

Result<void> Copier::read_target() {
  if (target_ == nullptr) return {};
  VARVE_TRY_ASSIGN(const auto id, target_->repository_id());
  if (id == source_.id()) {
    return Error(
        ErrorCode::kInvalid,
        "the target belongs to the repository of the source: it is the source itself, a "
        "copy of its files, or the folder that took over from it. Give an empty folder; to "
        "bring versions into the folder that took over, mount the source with -o ro and "
        "`varve store` them from there");
  }
  VARVE_TRY_ASSIGN(const auto all, target_->series());
  for (const TargetSeries& series : all) {
    VARVE_TRY_ASSIGN(auto versions, target_->versions(series.id));
    for (const TargetVersion& version : versions) {
      if (!version.origin || version.origin->repository == source_.id()) continue;
      return Error(ErrorCode::kInvalid,
                   fmt::format("the target holds copies of another repository, {}: {} is one; give "
                               "a target of its own to each source",
                               version.origin->repository, path_text(series.name, version.name)));
    }
    known_.push_back({series, std::move(versions)});
  }
  return {};
}

Result<void> Copier::copy_series(const SeriesInfo& series) {
  Job job;
  job.source = series;
  VARVE_TRY_ASSIGN(const auto versions, source_.versions(series.id));
  for (const VersionInfo& version : versions) {
    if (version.state == VersionState::kSealed) job.originals.push_back(version);
  }
  VARVE_TRY(find_target(job));
  VARVE_TRY(check_copies(job));
  VARVE_TRY(rename_copies(job));
  VARVE_TRY(copy_missing(job));
  if (job.renames != nullptr) VARVE_TRY(rename_target(job));
  VARVE_TRY(lock_copies(job));
  VARVE_TRY(copy_beside(job));
  VARVE_TRY(prune_copies(job));
  return options_.check_all ? compare_copies(job) : Result<void>();
}

/// Finds the series of the target by the origins of the versions, or else by name.
Result<void> Copier::find_target(Job& job) {
  const auto is_copy = [&](const Known& known) {
    return std::ranges::any_of(known.versions, [&](const TargetVersion& version) {
      return version.origin && version.origin->series == job.source.id;
    });
  };
  auto found = std::ranges::find_if(known_, is_copy);
  const auto named = std::ranges::find_if(
      known_, [&](const Known& known) { return known.series.name == job.source.name; });
  if (found == known_.end() && named != known_.end()) {
    const bool has_sealed = std::ranges::any_of(named->versions, [](const TargetVersion& version) {
      return version.is_sealed && !is_sealed_remnant(version);
    });
    if (has_sealed) {
      return Error(ErrorCode::kExists,
                   "the target has a series of this name that is no copy of it; rename one of "
                   "them with `varve mv`");
    }
    found = named;
  }
  if (found != known_.end()) {
    job.target = found->series.id;
    for (const TargetVersion& version : found->versions) {
      if (version.is_sealed && !is_sealed_remnant(version)) job.copies.push_back(version);
    }
    if (found->series.name == job.source.name) return {};
    job.renames = &*found;
    job.renames_last = std::ranges::any_of(found->versions, [](const TargetVersion& version) {
      return !version.is_sealed && is_receiving_name(version.name);
    });
    return job.renames_last ? Result<void>() : rename_target(job);
  }
  if (options_.dry_run) return {};
  VARVE_TRY_ASSIGN(job.target, target_->create_series(job.source.name,
                                                      {job.source.placement, job.source.rewrite}));
  return {};
}

Result<void> Copier::rename_target(Job& job) {
  TargetSeries& series = std::exchange(job.renames, nullptr)->series;
  tell({.action = CopyAction::kRenamed, .series = series.name, .new_name = job.source.name});
  if (options_.dry_run) return {};
  VARVE_TRY(target_->rename_series(series.id, job.source.name));
  series.name = job.source.name;
  return {};
}

/// Refuses a target with versions that are no copies, and a source restored from an older state.
Result<void> Copier::check_copies(const Job& job) const {
  const TargetVersion* newest = nullptr;
  for (const TargetVersion& copy : job.copies) {
    if (!copy.origin || copy.origin->series != job.source.id) {
      return Error(ErrorCode::kInvalid,
                   fmt::format("{} in the target is no copy from this series. A target takes only "
                               "copies: rename its series, or remove that version with `varve rm`",
                               path_text(job.source.name, copy.name)));
    }
    const VersionInfo* const original = original_of(job.originals, copy);
    if (original != nullptr && original->sealed_at != copy.origin->sealed_at) {
      return Error(ErrorCode::kInvalid,
                   fmt::format("{} was copied from a version that the source does not have: the "
                               "source has another one of the same number, so it was restored "
                               "from an older state. Copy it to a new target",
                               path_text(job.source.name, copy.name)));
    }
    if (newest == nullptr || newest->origin->number < copy.origin->number) newest = &copy;
  }
  if (newest == nullptr) return {};
  for (const VersionInfo& original : job.originals) {
    if (original.number < newest->origin->number && copy_of(job.copies, original) == nullptr &&
        original.sealed_at > newest->origin->sealed_at) {
      return Error(ErrorCode::kInvalid,
                   fmt::format("{} is newer than the copies in the target, but has a lower number: "
                               "the source was restored from an older state. Copy it to a new "
                               "target",
                               path_text(job.source.name, original.name)));
    }
  }
  return check_newest(job, *newest);
}

// A source restored from an older state seems to have deleted all later versions.
Result<void> Copier::check_newest(const Job& job, const TargetVersion& newest) const {
  if (job.originals.empty() || newest.origin->number <= job.originals.back().number) return {};
  const std::string what = fmt::format(
      "{} in the target is newer than all versions of the source: they were deleted, or "
      "the source was restored from an older state",
      path_text(job.source.name, newest.name));
  if (options_.prune) {
    return Error(ErrorCode::kInvalid,
                 what +
                     ". Nothing was deleted; copy without --prune, and remove versions that are "
                     "not needed from the target with `varve rm`");
  }
  base::log(base::LogLevel::kWarning,
            what + ". If it was restored, copy it to a new target from now on");
  return {};
}

Result<void> Copier::rename_copies(Job& job) {
  for (const NameChange& change : plan_names(job.originals, job.copies)) {
    tell({.action = CopyAction::kRenamed,
          .series = job.source.name,
          .version = change.from,
          .new_name = change.to});
    ++report_.renamed;
    if (!options_.dry_run) {
      VARVE_TRY(target_->rename_version(*job.target, change.number, change.to));
    }
    std::ranges::find(job.copies, change.number, &TargetVersion::number)->name = change.to;
  }
  return {};
}

Result<void> Copier::copy_missing(Job& job) {
  VersionNumber newest{};
  for (const TargetVersion& copy : job.copies) newest = std::max(newest, copy.origin->number);
  for (const VersionInfo& original : job.originals) {
    if (copy_of(job.copies, original) != nullptr) {
      ++report_.present;
    } else if (original.number < newest) {
      ++report_.passed_over;
    } else if (options_.dry_run) {
      tell({.series = job.source.name, .version = original.name});
      ++report_.copied;
    } else {
      VARVE_TRY_ASSIGN(const bool copied, copy_one(job, original));
      if (copied) ++report_.copied;
    }
    ++progress_.files_done;
  }
  return {};
}

Result<bool> Copier::copy_one(Job& job, const VersionInfo& original) {
  std::shared_ptr<VersionReader> before;
  CopyBegin begin;
  begin.series = *job.target;
  begin.origin = {source_.id(), job.source.id, original.number, original.sealed_at, true};
  begin.continues = !options_.incomplete;
  for (auto copy = job.copies.rbegin(); copy != job.copies.rend() && !before; ++copy) {
    const VersionInfo* const earlier = original_of(job.originals, *copy);
    if (earlier == nullptr || !copy->origin->whole) continue;
    auto reader = source_.reader(job.source.id, earlier->number);
    if (!reader) continue;  // Deleted meanwhile.
    before = std::move(*reader);
    begin.base = copy->number;
  }
  auto now = source_.reader(job.source.id, original.number);
  if (!now && is_gone(now.error())) return false;
  if (!now) return std::move(now).error();
  VersionSender sender(*target_, **now, before.get(),
                       {.incomplete = options_.incomplete,
                        .progress = [this](std::uint64_t bytes) { return advance(bytes); }});
  auto sent = sender.send(begin);
  if (!sent && (sender.is_source_gone() || sender.is_source_damaged())) {
    const auto still_there = source_.find_version(job.source.id, original.name);
    VARVE_TRY(target_->drop());
    if (!still_there && is_gone(still_there.error())) return false;
    report_.problems.push_back(
        path_text(job.source.name, original.name) + ": skipped: " + sent.error().message() +
        (options_.incomplete ? "" : "; `--incomplete` copies it without its damaged files"));
    return false;
  }
  if (!sent) {
    return std::move(sent).error().with_context(original.name);
  }
  for (const std::string& problem : sender.problems()) {
    report_.problems.push_back(path_text(job.source.name, original.name) + "/" + problem);
  }
  VARVE_TRY_ASSIGN(auto copy, seal_one(job, original, sender));
  job.copies.push_back(std::move(copy));
  return true;
}

Result<TargetVersion> Copier::seal_one(const Job& job, const VersionInfo& original,
                                       const VersionSender& sender) {
  const bool whole = sender.problems().empty();
  VARVE_TRY_ASSIGN(auto copy,
                   target_->seal({original.name, original.claimed_at, whole, original.problems}));
  if (whole && copy.entries != original.entries) {
    const auto dropped = target_->delete_versions(*job.target, {copy.number});
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("the copy of {} has {} entries, not {}{}", original.name, copy.entries,
                    original.entries, dropped && dropped->empty() ? "; it was removed again" : ""));
  }
  const SentCounts& counts = sender.counts();
  report_.changes += counts.changes;
  report_.data_bytes += counts.data_bytes;
  report_.sent_bytes += counts.sent_bytes;
  tell({.series = job.source.name,
        .version = original.name,
        .changes = counts.changes,
        .data_bytes = counts.data_bytes,
        .sent_bytes = counts.sent_bytes,
        .whole = whole});
  return copy;
}

Result<void> Copier::lock_copies(const Job& job) {
  if (options_.dry_run) return {};
  VARVE_TRY_ASSIGN(const auto locks, source_.version_locks(job.source.id));
  Locks wanted;
  for (const VersionLock& lock : locks) {
    const auto copy = std::ranges::find_if(job.copies, [&](const TargetVersion& one) {
      return one.origin->number == lock.number && one.locked_until < lock.locked_until;
    });
    if (copy == job.copies.end()) continue;
    VARVE_TRY(target_->lock_version(*job.target, copy->number, lock.locked_until));
    wanted[copy->number] = lock.locked_until;
  }
  return wanted.empty() ? Result<void>() : check_locks(job, wanted);
}

// A target on another machine limits the locks copied from the source.
Result<void> Copier::check_locks(const Job& job, const Locks& wanted) const {
  VARVE_TRY_ASSIGN(const auto copies, target_->versions(*job.target));
  for (const TargetVersion& copy : copies) {
    const auto lock = wanted.find(copy.number);
    if (lock == wanted.end() || lock->second <= copy.locked_until) continue;
    base::log(base::LogLevel::kWarning,
              path_text(job.source.name, copy.name) + ": the target ends the lock at " +
                  base::local_time_text(copy.locked_until) + ", not at " +
                  base::local_time_text(lock->second) + ": see --lock-max of `varve serve-copy`");
  }
  return {};
}

Result<void> Copier::copy_beside(const Job& job) {
  if (options_.dry_run) return {};
  VARVE_TRY_ASSIGN(const auto files, read_beside(source_, job.source.id));
  const auto set = target_->set_beside(*job.target, files);
  if (set || !concerns_series(set.error())) return set;
  report_.problems.push_back(job.source.name + ": the files beside the versions were not copied: " +
                             set.error().message());
  return {};
}

// A source without versions deletes nothing: the source may be broken.
Result<void> Copier::prune_copies(Job& job) {
  std::vector<VersionNumber> gone;
  for (const TargetVersion& copy : job.copies) {
    if (original_of(job.originals, copy) == nullptr) gone.push_back(copy.number);
  }
  if (!options_.prune || gone.empty() || job.originals.empty()) {
    report_.kept += gone.size();
    if (options_.prune && !gone.empty()) {
      report_.problems.push_back(job.source.name +
                                 ": nothing was deleted, because the source has no version left");
    }
    return {};
  }
  std::vector<std::string> held;
  if (!options_.dry_run) {
    VARVE_TRY_ASSIGN(held, target_->delete_versions(*job.target, gone));
  }
  for (const std::string& reason : held) {
    report_.problems.push_back(job.source.name + ": not deleted: " + reason);
  }
  report_.kept += held.size();
  report_.deleted += gone.size() - held.size();
  for (const VersionNumber number : gone) {
    const auto copy = std::ranges::find(job.copies, number, &TargetVersion::number);
    if (held.empty()) {
      tell({.action = CopyAction::kDeleted, .series = job.source.name, .version = copy->name});
    }
    job.copies.erase(copy);
  }
  return {};
}

Result<void> Copier::compare_copies(const Job& job) {
  if (target_ == nullptr || !job.target) return {};
  for (const TargetVersion& copy : job.copies) {
    const VersionInfo* const original = original_of(job.originals, copy);
    if (original == nullptr || !copy.origin->whole) continue;
    auto reader = source_.reader(job.source.id, original->number);
    if (!reader) continue;  // Deleted meanwhile.
    VersionSender sender(
        *target_, **reader, nullptr,
        {.incomplete = false, .progress = [this](std::uint64_t bytes) { return advance(bytes); }});
    std::vector<std::string> differences;
    auto compared = sender.check_sealed(*job.target, copy.number, differences);
    if (!compared && (sender.is_source_gone() || sender.is_source_damaged())) {
      if (sender.is_source_damaged()) differences = {"the source: " + compared.error().message()};
    } else if (!compared && !concerns_series(compared.error())) {
      return compared;
    } else if (!compared) {
      differences.push_back(compared.error().message());
    }
    const std::string path = path_text(job.source.name, copy.name);
    for (const std::string& difference : differences) {
      report_.problems.push_back(path + ": differs: " + difference);
    }
    if (differences.empty()) {
      tell({.action = CopyAction::kChecked, .series = job.source.name, .version = copy.name});
    }
  }
  return {};
}

}  // namespace varve::copy
