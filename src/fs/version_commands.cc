// SPDX-License-Identifier: Apache-2.0
#include "fs/version_commands.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "control/local_control.h"
#include "fs/version_directory.h"
#include "varve/replication.h"
#include "varve/version_name.h"

namespace varve::fs {
namespace {
constexpr std::chrono::milliseconds kWriterPoll{500};
}  // namespace

Result<void> VersionCommands::check_changes() const {
  return repository_.learn_fence(FenceAge::kOfVersions) ? Result<void>(control::no_changes())
                                                        : Result<void>();
}

Result<VersionInfo> VersionCommands::open_version(const SeriesInfo& series, std::string_view name,
                                                  const NewFile& root) {
  VARVE_TRY(check_changes());
  std::string sealed;
  std::optional<Result<VersionInfo>> opened;
  {
    const std::lock_guard lock(changes_.mutex_of(series.id));
    VARVE_TRY_ASSIGN(sealed, changes_.end_present_version(series, name, VersionNumber{}));
    opened = repository_.open_version(series.id, name, root);
  }
  changes_.forget_names(series.id, {sealed, std::string(name)});
  return std::move(*opened);
}

Result<VersionInfo> VersionCommands::clone_version(const SeriesInfo& series, VersionNumber source,
                                                   std::string_view name) {
  VARVE_TRY(check_changes());
  std::string sealed;
  std::optional<Result<VersionInfo>> opened;
  {
    const std::lock_guard lock(changes_.mutex_of(series.id));
    VARVE_TRY_ASSIGN(sealed, changes_.end_present_version(series, name, source));
    opened = repository_.clone_version(series.id, source, name);
  }
  changes_.forget_names(series.id, {sealed, *opened ? (*opened)->name : std::string(name)});
  return std::move(*opened);
}

Result<void> VersionCommands::discard_version(SeriesId series, VersionNumber number) {
  std::string name;
  {
    const std::lock_guard lock(changes_.mutex_of(series));
    VARVE_TRY_ASSIGN(const auto versions, repository_.versions(series));
    for (const VersionInfo& version : versions) {
      if (version.number == number) name = version.name;
    }
    VARVE_TRY(repository_.abandon_version(series, number, true));
    if (Slot* slot = nodes_.slots().find(series, number)) slot->drop();
  }
  changes_.forget_names(series, {name});
  return {};
}

Result<void> VersionCommands::rename_version(const VersionInfo& version,
                                             std::string_view new_name) {
  {
    const std::lock_guard lock(changes_.mutex_of(version.series));
    VARVE_TRY(repository_.rename_version(version.series, version.number, new_name));
    // The present reader has the old name.
    if (Slot* slot = nodes_.slots().find(version.series, version.number)) {
      if (auto reader = repository_.reader(version.series, version.number)) {
        slot->set_reader(std::move(*reader));
      }
    }
  }
  changes_.forget_latest(version.series);
  changes_.forget_names(version.series, {version.name, std::string(new_name)});
  return {};
}

Result<void> VersionCommands::rename_series(const SeriesInfo& series, std::string_view new_name) {
  {
    const std::lock_guard lock(changes_.mutex_of(series.id));
    VARVE_TRY(repository_.rename_series(series.id, new_name));
    nodes_.slots().rename_series(series.id, std::string(new_name));
  }
  changes_.forget_series_names({series.name, std::string(new_name)});
  return {};
}

Result<DeletionForecast> VersionCommands::delete_versions(SeriesId series,
                                                          const std::vector<VersionNumber>& numbers,
                                                          const DeletionOptions& options) {
  std::vector<std::string> names;
  std::optional<Result<DeletionForecast>> deleted;
  {
    const std::lock_guard lock(changes_.mutex_of(series));
    VARVE_TRY_ASSIGN(const auto versions, repository_.versions(series));
    deleted = changes_.delete_after_last_close(series, numbers, options);
    if (!*deleted) return std::move(*deleted);
    const auto& gone = (*deleted)->versions;
    for (const VersionInfo& version : versions) {
      const bool went = std::ranges::find(gone, version.number) != gone.end();
      if (went) names.push_back(version.name);
    }
    // Requests for nodes of the deleted versions get ESTALE from now on.
    for (const VersionNumber number : gone) {
      if (Slot* slot = nodes_.slots().find(series, number)) slot->drop();
    }
  }
  if (options.force) changes_.forget_contents(series, (*deleted)->versions);
  changes_.forget_latest(series);
  names.emplace_back(kLatestName);  // `latest` disappears with the last version.
  changes_.forget_names(series, names);
  return std::move(*deleted);
}

// The seal of a reopened version deletes the replaced version.
void VersionCommands::drop_deleted(SeriesId series, const std::vector<VersionInfo>& before) {
  const auto after = repository_.versions(series);
  if (!after) return;
  for (const VersionInfo& version : before) {
    const auto same = [&](const VersionInfo& other) { return other.number == version.number; };
    if (std::ranges::any_of(*after, same)) continue;
    if (Slot* slot = nodes_.slots().find(series, version.number)) slot->drop();
  }
}

Result<SealOutcome> VersionCommands::seal(SeriesId series, VersionNumber number,
                                          const control::SealRequest& request,
                                          const std::function<bool()>& cancelled) {
  std::optional<Result<SealOutcome>> sealed;
  std::string old_name;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(request.wait_seconds);
  for (;;) {
    const bool waits =
        request.wait && (request.wait_seconds == 0 || std::chrono::steady_clock::now() < end);
    const auto writers = request.force && !waits ? SealWriters::kCutOff : SealWriters::kRefuse;
    {
      const std::lock_guard lock(changes_.mutex_of(series));
      if (auto writer = repository_.writer(series)) old_name = (*writer)->info().name;
      VARVE_TRY_ASSIGN(const auto before, repository_.versions(series));
      sealed = changes_.seal(series, number, request.new_name,
                             request.keep ? SealMode::kKeep : SealMode::kEnd, writers);
      if (*sealed) drop_deleted(series, before);
    }
    if (*sealed || !waits || sealed->error().code() != ErrorCode::kBusy) break;
    // The time limit covers a close between the attempt and the wait.
    static_cast<void>(changes_.wait_for_close(changes_.closed_writers(),
                                              std::chrono::steady_clock::now() + kWriterPoll));
    if (cancelled()) {
      return Error(ErrorCode::kInterrupted, "interrupted while waiting for writers");
    }
  }
  if (*sealed) changes_.forget_names(series, {old_name, (*sealed)->info.name});
  return std::move(*sealed);
}

}  // namespace varve::fs
