// SPDX-License-Identifier: Apache-2.0
#include "copy/own_copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "varve/copy_name.h"

namespace varve::copy {
namespace {

/// Returns the id of the repository that a version came from, or comes from while the copy is not
/// complete; empty for a version of the target's own.
std::string repository_of(const TargetVersion& version) {
  return version.origin ? version.origin->repository : receiving_repository(version.name);
}

/// An open version of a local user does not make the series another one: only a copy to the series
/// has to wait for the seal.
bool is_open_work(const TargetVersion& version) {
  return !version.is_sealed && repository_of(version).empty();
}

Error several_origins(const std::set<std::string>& origins) {
  return {ErrorCode::kInvalid,
          fmt::format("the target holds copies of several repositories: {}. The command on the "
                      "machine of the target has to say which of them this source is: `varve "
                      "serve-copy --origin=ID`",
                      fmt::join(origins, ", "))};
}

}  // namespace

TargetVersion* OwnSeries::find_copy(VersionNumber number) {
  const auto found = std::ranges::find(versions, number, &TargetVersion::number);
  return found != versions.end() && found->is_sealed && found->origin ? &*found : nullptr;
}

Result<OwnCopies> OwnCopies::read(Target& target, std::string origin) {
  VARVE_TRY_ASSIGN(const auto all, target.series());
  std::vector<OwnSeries> present;
  std::set<std::string> origins;
  for (const TargetSeries& series : all) {
    VARVE_TRY_ASSIGN(auto versions, target.versions(series.id));
    for (const TargetVersion& version : versions) origins.insert(repository_of(version));
    present.push_back({series, std::move(versions)});
  }
  origins.erase("");
  if (origin.empty() && origins.size() > 1) return several_origins(origins);
  if (origin.empty() && !origins.empty()) origin = *origins.begin();
  OwnCopies copies(target, std::move(origin));
  for (OwnSeries& series : present) copies.sort_in(std::move(series));
  return copies;
}

void OwnCopies::sort_in(OwnSeries series) {
  if (series.versions.empty()) {
    series.was_empty = true;
    empty_.push_back(std::move(series));
    return;
  }
  const bool has_work = std::erase_if(series.versions, is_open_work) != 0;
  const bool is_own = !origin_.empty() && !series.versions.empty() &&
                      std::ranges::all_of(series.versions, [&](const TargetVersion& version) {
                        return repository_of(version) == origin_;
                      });
  if (has_work || !is_own) has_others_ = true;
  if (is_own) own_.push_back(std::move(series));
}

std::vector<TargetSeries> OwnCopies::series() const {
  std::vector<TargetSeries> all;
  for (const OwnSeries& one : own_) all.push_back(one.series);
  return all;
}

OwnSeries* OwnCopies::find(SeriesId series) {
  const auto found =
      std::ranges::find_if(own_, [&](const OwnSeries& one) { return one.series.id == series; });
  return found == own_.end() ? nullptr : &*found;
}

std::optional<SeriesId> OwnCopies::take_empty(const std::string& name) {
  const auto found =
      std::ranges::find_if(empty_, [&](const OwnSeries& one) { return one.series.name == name; });
  if (found == empty_.end()) return std::nullopt;
  const SeriesId id = found->series.id;
  own_.push_back(std::move(*found));
  empty_.erase(found);
  return id;
}

Result<void> OwnCopies::refresh(SeriesId series) {
  OwnSeries* const own = find(series);
  if (own == nullptr) return {};
  VARVE_TRY_ASSIGN(own->versions, target_->versions(series));
  std::erase_if(own->versions, is_open_work);
  return {};
}

}  // namespace varve::copy
