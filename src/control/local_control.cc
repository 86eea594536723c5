// SPDX-License-Identifier: Apache-2.0
#include "control/local_control.h"

#include <fmt/core.h>

#include <utility>

#include "control/named_version.h"
#include "varve/replication.h"

namespace varve::control {

Result<SealReply> LocalControl::seal(const SealRequest& request, const StopRequest& stop) {
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(request.version));
  VARVE_TRY_ASSIGN(const VersionInfo version, find_version(repository_, name));
  if (version.state == VersionState::kSealed) {
    return Error(ErrorCode::kReadOnly, fmt::format("{} is sealed already", request.version));
  }
  VARVE_TRY_ASSIGN(SealOutcome outcome, seal_version(version, request, stop));
  return SealReply{std::move(outcome.info), std::move(outcome.next), std::move(outcome.warning)};
}

Error no_changes() {
  return {ErrorCode::kReadOnly,
          "the change was not made: another folder writes to the repository in the object store, "
          "which no change of this folder reaches any more; `varve status` says more"};
}

// A fenced folder seals what is open, and can be read and copied. decisions/116.
Result<void> LocalControl::check_changes() {
  return repository_.is_fenced() ? Result<void>(no_changes()) : Result<void>();
}

Result<VersionInfo> LocalControl::open(const OpenRequest& request) {
  VARVE_TRY(check_changes());
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(request.version));
  NewFile root;
  root.mode = request.mode;
  root.uid = request.uid;
  root.gid = request.gid;
  return open_in_series(repository_, name.series, [&](const SeriesInfo& series) {
    return open_version(series, name.version, root);
  });
}

Result<VersionInfo> LocalControl::clone(const OpenRequest& request) {
  VARVE_TRY(check_changes());
  VARVE_TRY_ASSIGN(const VersionName target, split_version_name(request.version));
  VARVE_TRY_ASSIGN(const VersionName source, split_version_name(request.source));
  if (source.series != target.series) {
    return Error(ErrorCode::kOtherVersion, "a version and its clone must be in the same series");
  }
  VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository_, source.series));
  VARVE_TRY_ASSIGN(const VersionInfo info, find_version(repository_, source));
  if (info.state != VersionState::kSealed) {
    return version_is_open(request.source);
  }
  // A clone of `latest` onto `latest` reopens the version, under the version's own name.
  const bool reopens = request.version == request.source;
  return clone_version(series, info.number, reopens ? info.name : target.version);
}

Result<DeletionForecast> LocalControl::remove(const DeleteRequest& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository_, request.series));
  if (!request.forecast_only) VARVE_TRY(check_changes());
  if (request.discard) {
    DeletionForecast dropped;
    for (const VersionNumber number : request.versions) {
      VARVE_TRY(discard_version(series.id, number));
      dropped.versions.push_back(number);
    }
    return dropped;
  }
  if (request.forecast_only) {
    return repository_.forecast_deletion(series.id, request.versions, request.options);
  }
  return delete_versions(series.id, request.versions, request.options);
}

Result<void> LocalControl::lock(const LockRequest& request) {
  VARVE_TRY(check_changes());
  VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository_, request.series));
  return repository_.lock_version(series.id, request.version, request.until);
}

Result<void> LocalControl::claim(const ClaimRequest& request) {
  VARVE_TRY(check_changes());
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(request.version));
  VARVE_TRY_ASSIGN(const VersionInfo version, find_version(repository_, name));
  if (version.state == VersionState::kSealed) {
    return Error(ErrorCode::kReadOnly, fmt::format("{} is sealed already", request.version));
  }
  return claim_time(repository_, version, request.time);
}

Result<void> LocalControl::rename(const RenameRequest& request) {
  VARVE_TRY(check_changes());
  if (request.name.find('/') == std::string::npos) {
    VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository_, request.name));
    return rename_series(series, request.new_name);
  }
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(request.name));
  VARVE_TRY_ASSIGN(const VersionInfo version, find_version(repository_, name));
  if (version.state != VersionState::kSealed) {
    return Error(
        ErrorCode::kBusy,
        fmt::format("{} is open; seal it under the new name with `varve seal`", request.name));
  }
  return rename_version(version, request.new_name);
}

Result<ArrangeReport> LocalControl::arrange(
    const ArrangeRequest& request, const StopRequest& stop,
    const std::function<void(const ArrangeProgress&)>& progress) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository_, request.series));
  return repository_.arrange(series.id, {.bytes_per_second = request.bytes_per_second,
                                         .post_pass = {.any_new = request.compare_all_new,
                                                       .everything = request.every_duplicate},
                                         .stop = stop.token(),
                                         .progress = progress});
}

Result<ArrangeSettings> LocalControl::arrange_settings(
    const std::optional<ArrangeSettings>& settings) {
  if (settings) {
    VARVE_TRY(check_changes());
    VARVE_TRY(repository_.set_arrange_settings(*settings));
  }
  return repository_.arrange_settings();
}

Result<SeriesSettings> LocalControl::series_settings(const SeriesSettingsRequest& request) {
  const bool changes = request.changes.placement || request.changes.rewrite;
  if (changes) VARVE_TRY(check_changes());
  if (request.series.empty()) {
    return changes ? repository_.change_series_defaults(request.changes)
                   : repository_.series_defaults();
  }
  VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository_, request.series));
  if (!changes) return SeriesSettings{series.placement, series.rewrite};
  return repository_.change_series(series.id, request.changes);
}

Result<UpkeepSettings> LocalControl::upkeep(const UpkeepRequest& request) {
  if (request.settings) {
    VARVE_TRY(check_changes());
    VARVE_TRY(repository_.set_upkeep_settings(*request.settings));
  }
  return repository_.upkeep_settings();
}

Result<PoolIndexChoice> LocalControl::pool_index(const PoolIndexRequest& request) {
  if (request.choice) {
    VARVE_TRY(check_changes());
    VARVE_TRY(repository_.set_pool_index(*request.choice));
  }
  return repository_.pool_index();
}

Result<void> LocalControl::adopt_keys(const KeysRequest& request) {
  VARVE_TRY(check_changes());
  return repository_.adopt_keys(request.superblock);
}

Result<DamageReply> LocalControl::known_damage(const DamageRequest& request) {
  DamageReply reply;
  if (request.settles) {
    VARVE_TRY_ASSIGN(reply.changed, repository_.settle_quarantine());
  }
  if (request.version.empty()) return reply;
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(request.version));
  VARVE_TRY_ASSIGN(const VersionInfo version, find_version(repository_, name));
  VARVE_TRY_ASSIGN(reply.lost, repository_.lost_files(version.series, version.number));
  return reply;
}

Result<std::vector<PoolStream>> LocalControl::pool_streams() { return repository_.pool_streams(); }

Result<std::vector<VersionInfo>> LocalControl::open_versions(const std::string& series) {
  VARVE_TRY_ASSIGN(const SeriesInfo found, find_series(repository_, series));
  return repository_.open_versions(found.id);
}

Result<SealOutcome> LocalControl::seal_version(const VersionInfo& version,
                                               const SealRequest& request,
                                               const StopRequest& /*stop*/) {
  VARVE_TRY_ASSIGN(SealOutcome outcome,
                   repository_.seal(version.series, version.number, request.new_name,
                                    request.keep ? SealMode::kKeep : SealMode::kEnd,
                                    request.force ? SealWriters::kCutOff : SealWriters::kRefuse));
  outcome.warning.clear();
  return outcome;
}

Result<VersionInfo> LocalControl::open_version(const SeriesInfo& series, std::string_view name,
                                               const NewFile& root) {
  return repository_.open_version(series.id, name, root);
}

Result<VersionInfo> LocalControl::clone_version(const SeriesInfo& series, VersionNumber source,
                                                std::string_view name) {
  return repository_.clone_version(series.id, source, name);
}

Result<void> LocalControl::discard_version(SeriesId series, VersionNumber number) {
  return repository_.abandon_version(series, number, true);
}

Result<void> LocalControl::rename_version(const VersionInfo& version, std::string_view new_name) {
  return repository_.rename_version(version.series, version.number, new_name);
}

Result<void> LocalControl::rename_series(const SeriesInfo& series, std::string_view new_name) {
  return repository_.rename_series(series.id, new_name);
}

Result<DeletionForecast> LocalControl::delete_versions(SeriesId series,
                                                       const std::vector<VersionNumber>& numbers,
                                                       const DeletionOptions& options) {
  return repository_.delete_versions(series, numbers, options);
}

}  // namespace varve::control
