// SPDX-License-Identifier: Apache-2.0
#include "copy/confined_target.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "copy/beside_files.h"
#include "varve/version_name.h"

namespace varve::copy {
namespace {

constexpr std::int64_t kAheadSecondsMax = 86400;

/// The answer is the same for a series of another source and for an unused number.
Error no_such_series() {
  return {ErrorCode::kNotFound, "the target has no such series with copies of this source"};
}

/// Checks that no file beside versions takes a name with a meaning: a link `latest` would replace
/// the name of the newest version in a mount.
Result<void> check_beside_names(const std::vector<BesideFile>& files) {
  for (const BesideFile& file : files) {
    if (!file.folder.empty()) continue;
    if (file.name != kLatestName && !is_partial_name(file.name)) continue;
    return Error(ErrorCode::kNotPermitted,
                 file.name + ": the target reserves this name; rename the file at the source");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ConfinedTarget>> ConfinedTarget::confine(std::unique_ptr<Target> target,
                                                                Repository& repository,
                                                                const SourceRights& rights,
                                                                const base::Clock& clock) {
  VARVE_TRY_ASSIGN(auto copies, OwnCopies::read(*target, rights.origin));
  return std::unique_ptr<ConfinedTarget>(
      new ConfinedTarget(std::move(target), repository, rights, clock, std::move(copies)));
}

Result<OwnSeries*> ConfinedTarget::own_series(SeriesId series) {
  OwnSeries* const own = copies_.find(series);
  if (own == nullptr) return no_such_series();
  return own;
}

Result<TargetVersion*> ConfinedTarget::own_copy(SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(auto* const own, own_series(series));
  TargetVersion* const copy = own->find_copy(number);
  if (copy == nullptr) {
    return Error(ErrorCode::kNotFound,
                 "the series has no such version that is a copy from this source");
  }
  return copy;
}

Result<std::vector<TargetVersion>> ConfinedTarget::versions(SeriesId series) {
  VARVE_TRY_ASSIGN(const auto* const own, own_series(series));
  return own->versions;
}

// A copy interrupted before its first version left a series without versions.
Result<SeriesId> ConfinedTarget::create_series(const std::string& name,
                                               const SeriesSettings& settings) {
  if (const auto empty = copies_.take_empty(name)) return *empty;
  if (copies_.possible_series() >= rights_.series_max) {
    return Error(ErrorCode::kNotPermitted,
                 fmt::format("the target has {} series that are copies of this source or have no "
                             "versions, as many as the source may create. Remove empty series "
                             "there with rmdir in a mount, or permit more: `varve serve-copy "
                             "--series-max`",
                             copies_.possible_series()));
  }
  auto made = target_->create_series(name, settings);
  if (!made && made.error().code() == ErrorCode::kExists) {
    return Error(ErrorCode::kExists,
                 "the target has a series of this name that has versions from elsewhere; rename "
                 "one of the two with `varve mv`");
  }
  if (made) copies_.add({*made, name});
  return made;
}

Result<void> ConfinedTarget::rename_series(SeriesId series, const std::string& name) {
  VARVE_TRY_ASSIGN(auto* const own, own_series(series));
  if (own->was_empty) return no_such_series();
  VARVE_TRY(target_->rename_series(series, name));
  own->series.name = name;
  return copies_.refresh(series);  // The rename may have dropped an unfinished copy.
}

Result<void> ConfinedTarget::rename_version(SeriesId series, VersionNumber number,
                                            const std::string& name) {
  VARVE_TRY_ASSIGN(auto* const copy, own_copy(series, number));
  VARVE_TRY(check_version_name(name, VersionState::kSealed));
  VARVE_TRY(target_->rename_version(series, number, name));
  copy->name = name;
  return {};
}

Result<void> ConfinedTarget::lock_version(SeriesId series, VersionNumber number,
                                          const Timestamp& until) {
  VARVE_TRY_ASSIGN(auto* const copy, own_copy(series, number));
  const Timestamp now = clock_.now();
  Timestamp latest = now;
  latest.seconds += static_cast<std::int64_t>(rights_.lock_seconds_max);
  const bool is_cut = latest < until;
  if (is_cut && latest <= std::max(now, copy->locked_until)) return {};
  const Timestamp end = is_cut ? latest : until;
  VARVE_TRY(target_->lock_version(series, number, end));
  copy->locked_until = end;
  return {};
}

Result<std::vector<std::string>> ConfinedTarget::delete_versions(
    SeriesId series, const std::vector<VersionNumber>& numbers) {
  bool all_new = true;
  for (const VersionNumber number : numbers) {
    VARVE_TRY(own_copy(series, number));
    all_new = all_new && sealed_.contains({series, number});
  }
  if (!all_new && !rights_.may_prune) {
    return Error(ErrorCode::kNotPermitted,
                 "this source may not delete versions; the command on the machine of the target "
                 "has to permit that: `varve serve-copy --may-prune`. Or delete there, with "
                 "`varve prune` or `varve rm`");
  }
  auto held = target_->delete_versions(series, numbers);
  VARVE_TRY(copies_.refresh(series));
  return held;
}

Result<void> ConfinedTarget::set_beside(SeriesId series, const std::vector<BesideFile>& files) {
  VARVE_TRY_ASSIGN(const auto* const own, own_series(series));
  VARVE_TRY(check_beside_names(files));
  if (own->was_empty) {
    VARVE_TRY_ASSIGN(const auto present, read_beside(repository_, series));
    if (!present.empty() && present != files) {
      return Error(ErrorCode::kExists,
                   "the series of the target has files beside versions, and no copy yet");
    }
  }
  return target_->set_beside(series, files);
}

Result<void> ConfinedTarget::check_origin(const VersionOrigin& origin) {
  if (!copies_.origin().empty() && origin.repository != copies_.origin()) {
    return Error(ErrorCode::kNotPermitted,
                 fmt::format("this target takes copies of the repository {} only, and the source "
                             "is {}; give a target of its own to each source",
                             copies_.origin(), origin.repository));
  }
  if (origin.sealed_at.seconds > clock_.now().seconds + kAheadSecondsMax) {
    return Error(
        ErrorCode::kNotPermitted,
        "the version was sealed more than a day after the present time of the target, and no "
        "rule would ever delete its copy; correct the clock that is wrong");
  }
  VARVE_TRY_ASSIGN(const auto own_id, target_->repository_id());
  if (origin.repository != own_id) return {};
  return Error(ErrorCode::kNotPermitted, "a repository holds no copies of itself");
}

Result<void> ConfinedTarget::check_place(const OwnSeries& own, const VersionOrigin& origin) {
  for (const TargetVersion& version : own.versions) {
    if (!version.origin) continue;
    if (version.origin->series != origin.series) {
      return Error(ErrorCode::kNotPermitted,
                   fmt::format("{} in the target holds copies of another series of the source",
                               own.series.name));
    }
    if (version.origin->number >= origin.number) {
      return Error(ErrorCode::kNotPermitted,
                   fmt::format("{} in the target has a copy of this version or of a later one",
                               own.series.name));
    }
  }
  return {};
}

Result<std::uint64_t> ConfinedTarget::begin(const CopyBegin& copy) {
  VARVE_TRY_ASSIGN(auto* const own, own_series(copy.series));
  VARVE_TRY(check_origin(copy.origin));
  VARVE_TRY(check_place(*own, copy.origin));
  if (copy.base != VersionNumber{}) VARVE_TRY(own_copy(copy.series, copy.base));
  CopyBegin confined = copy;
  // An answer about the pool would reveal contents not stored by the source.
  if (copies_.has_others()) confined.known = KnownChunks::kOfSeries;
  VARVE_TRY_ASSIGN(const auto durable, target_->begin(confined));
  copies_.pin(copy.origin.repository);
  own->was_empty = false;
  receiving_ = copy.series;
  return durable;
}

Result<std::vector<Difference>> ConfinedTarget::check(SeriesId series,
                                                      std::optional<VersionNumber> sealed,
                                                      bool first, const ChangeBatch& batch) {
  if (sealed) VARVE_TRY(own_copy(series, *sealed));
  return target_->check(series, sealed, first, batch);
}

Result<TargetVersion> ConfinedTarget::seal(const CopySeal& copy) {
  VARVE_TRY(check_version_name(copy.name, VersionState::kSealed));
  VARVE_TRY_ASSIGN(auto sealed, target_->seal(copy));
  OwnSeries* const own = copies_.find(receiving_);
  if (own != nullptr) {
    std::erase_if(own->versions, [](const TargetVersion& version) { return !version.is_sealed; });
    own->versions.push_back(sealed);
  }
  sealed_.insert({receiving_, sealed.number});
  return sealed;
}

}  // namespace varve::copy
