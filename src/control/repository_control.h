// SPDX-License-Identifier: Apache-2.0
// The changes of a command to a repository, in the command's process or in a daemon; and the table
// of the simple operations. The names on the socket, the daemon's answers and the command's
// requests all read the table.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "control/requests.h"
#include "control/simple_operation.h"
#include "control/stop_request.h"
#include "varve/arrange.h"
#include "varve/metrics.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"

namespace varve::control {

/// Controls a repository: LocalControl in the calling process, RemoteControl through the daemon
/// that has the repository mounted. Both give the same results and error codes. open_control()
/// chooses. Not thread-safe, unless an implementation says so.
///
/// Errors of each function: the errors of the Repository function called. RemoteControl also fails
/// with kUnavailable if the daemon does not answer.
class RepositoryControl {
 public:
  virtual ~RepositoryControl() = default;
  RepositoryControl(const RepositoryControl&) = delete;
  RepositoryControl& operator=(const RepositoryControl&) = delete;

  /// Returns the repository for reading. A remote control opens the repository read-only on the
  /// first call, and then lists only sealed versions.
  /// Lifetime: until the RepositoryControl is destroyed.
  [[nodiscard]] virtual Result<Repository*> view() = 0;
  /// Returns true if the process that makes the changes also arranges after each change.
  [[nodiscard]] virtual bool arranges_by_itself() const = 0;

  /// Seals an open version. A stop ends the waiting for writers.
  /// Errors: kReadOnly if the version is sealed; kBusy while files are open for writing;
  /// kInterrupted after a stop.
  [[nodiscard]] virtual Result<SealReply> seal(const SealRequest& request,
                                               const StopRequest& stop) = 0;
  /// Opens an empty version. Creates the series if needed.
  [[nodiscard]] virtual Result<VersionInfo> open(const OpenRequest& request) = 0;
  /// Opens a version with the tree of a sealed version. A clone onto the source's own name reopens
  /// the source.
  /// Errors: kOtherVersion if source and clone are not in the same series; kInvalid if the source
  /// is open.
  [[nodiscard]] virtual Result<VersionInfo> clone(const OpenRequest& request) = 0;
  /// Deletes versions, forecasts a deletion, or drops open versions, as the request says.
  [[nodiscard]] virtual Result<DeletionForecast> remove(const DeleteRequest& request) = 0;
  [[nodiscard]] virtual Result<void> lock(const LockRequest& request) = 0;
  /// Gives an open version a claimed time.
  /// Errors: also kUnsupported if a daemon of an older Varve has the repository mounted.
  [[nodiscard]] virtual Result<void> claim(const ClaimRequest& request) = 0;
  /// Renames a sealed version or a series.
  /// Errors: as claim(); kExists if the name is taken; kBusy for an open version, or a series with
  /// an open version.
  [[nodiscard]] virtual Result<void> rename(const RenameRequest& request) = 0;
  /// Stores a directory as a version, in the process that makes the changes; see
  /// varve::store_version(). Seals the version, if the task says so.
  /// Errors: also kLocked if the storing process sees another directory than the command, or
  /// may read less than the command; kInterrupted after a stop.
  [[nodiscard]] virtual Result<StoreTaskReply> store(
      const StoreTask& task, const StopRequest& stop,
      const std::function<void(const TransferProgress&)>& progress) = 0;
  /// Arranges a series. May call `progress` from another thread.
  /// Errors: after a stop, kInterrupted or an unfinished report.
  [[nodiscard]] virtual Result<ArrangeReport> arrange(
      const ArrangeRequest& request, const StopRequest& stop,
      const std::function<void(const ArrangeProgress&)>& progress) = 0;
  /// Stores `settings`, if given. Returns the current settings.
  [[nodiscard]] virtual Result<ArrangeSettings> arrange_settings(
      const std::optional<ArrangeSettings>& settings) = 0;

  /// Changes settings as the request says. Returns the present settings.
  /// Errors: also kUnsupported if a daemon of an older Varve has the repository mounted.
  [[nodiscard]] virtual Result<SeriesSettings> series_settings(
      const SeriesSettingsRequest& request) = 0;
  /// Chooses the index of the pool, if the request says so. Returns the present choice.
  /// Errors: as series_settings().
  [[nodiscard]] virtual Result<PoolIndexChoice> pool_index(const PoolIndexRequest& request) = 0;

  /// Stores the defaults of arranging and pruning, if the request has some. Returns the present
  /// ones. Errors: as series_settings().
  [[nodiscard]] virtual Result<UpkeepSettings> upkeep(const UpkeepRequest& request) = 0;

  /// Replaces the key slots of an encrypted repository; see Repository::adopt_keys().
  /// Errors: as series_settings().
  [[nodiscard]] virtual Result<void> adopt_keys(const KeysRequest& request) = 0;

  /// Quarantines chunks that a check found damaged, and returns the lost files of a version, as the
  /// request says.
  /// Errors: as series_settings().
  [[nodiscard]] virtual Result<DamageReply> known_damage(const DamageRequest& request) = 0;

  /// Returns the streams of the pool's index in the process that makes the changes.
  /// Errors: as series_settings().
  [[nodiscard]] virtual Result<std::vector<PoolStream>> pool_streams() = 0;

  /// Returns the open versions of a series with their present sizes.
  [[nodiscard]] virtual Result<std::vector<VersionInfo>> open_versions(
      const std::string& series) = 0;
  /// Returns the metrics of the process that makes the changes.
  /// Errors: kUnsupported for a daemon of an older Varve without metrics.
  [[nodiscard]] virtual Result<std::vector<MetricSample>> metrics() = 0;
  /// Makes all open versions durable.
  [[nodiscard]] virtual Result<void> sync() = 0;

  /// Closes all that the calling process has opened, and compacts the catalog, as
  /// Repository::compact_catalog(). Afterwards, only close() may be called.
  /// Errors: also kBusy if a daemon has the repository mounted.
  [[nodiscard]] virtual Result<CatalogCompaction> compact_catalog() = 0;
  /// As Repository::write_left_files(). A daemon calls write_left_files() after each change, and
  /// answers with the error as a warning.
  [[nodiscard]] virtual Result<void> write_left_files() = 0;
  /// Closes all that the calling process has opened. Call close() at the end to learn of errors,
  /// also of those of write_left_files() in a daemon.
  /// Afterwards, no function may be called.
  [[nodiscard]] virtual Result<void> close() = 0;

 protected:
  RepositoryControl() = default;
};

/// The simple operations.
inline constexpr std::tuple kSimpleOperations{
    SimpleOperation{Operation::kOpen, "open", &Request::open, &Reply::version,
                    &RepositoryControl::open, "", "version"},
    SimpleOperation{Operation::kClone, "clone", &Request::open, &Reply::version,
                    &RepositoryControl::clone, "", "version"},
    SimpleOperation{Operation::kDelete, "delete", &Request::removal, &Reply::forecast,
                    &RepositoryControl::remove, "", "sizes"},
    SimpleOperation{Operation::kLock, "lock", &Request::lock, nullptr, &RepositoryControl::lock, "",
                    ""},
    SimpleOperation{Operation::kArrangeSettings, "arrange_settings", &Request::settings,
                    &Reply::settings, &RepositoryControl::arrange_settings, "", "settings"},
    SimpleOperation{Operation::kSync, "sync", nullptr, nullptr, &RepositoryControl::sync, "", ""},
    SimpleOperation{Operation::kOpenVersions, "open_versions", &Request::series, &Reply::versions,
                    &RepositoryControl::open_versions, "", "versions"},
    SimpleOperation{Operation::kMetrics, "metrics", nullptr, &Reply::metrics,
                    &RepositoryControl::metrics, "metrics", "metrics"},
    SimpleOperation{Operation::kSeriesSettings, "series_settings", &Request::series_settings,
                    &Reply::series_settings, &RepositoryControl::series_settings,
                    "settings of series", "settings"},
    SimpleOperation{Operation::kPoolIndex, "pool_index", &Request::pool_index, &Reply::pool_index,
                    &RepositoryControl::pool_index, "the index of the pool", "index of the pool"},
    SimpleOperation{Operation::kUpkeep, "upkeep", &Request::upkeep, &Reply::upkeep,
                    &RepositoryControl::upkeep, "the defaults of arranging and pruning",
                    "defaults"},
    SimpleOperation{Operation::kClaim, "claim", &Request::claim, nullptr, &RepositoryControl::claim,
                    "claimed times", ""},
    SimpleOperation{Operation::kRename, "rename", &Request::rename, nullptr,
                    &RepositoryControl::rename, "command to rename versions and series", ""},
    SimpleOperation{Operation::kPoolStreams, "pool_streams", nullptr, &Reply::streams,
                    &RepositoryControl::pool_streams, "the streams of the pool's index", "streams"},
    SimpleOperation{Operation::kKeys, "keys", &Request::keys, nullptr,
                    &RepositoryControl::adopt_keys, "way to change keys", ""},
    SimpleOperation{Operation::kKnownDamage, "known_damage", &Request::damage, &Reply::damage,
                    &RepositoryControl::known_damage, "quarantine of damaged chunks", "damage"},
};

/// Returns the row of an operation.
template <Operation kOperation, std::size_t kAt = 0>
constexpr const auto& simple_operation() {
  if constexpr (std::get<kAt>(kSimpleOperations).operation == kOperation) {
    return std::get<kAt>(kSimpleOperations);
  } else {
    return simple_operation<kOperation, kAt + 1>();
  }
}

/// Calls `visit` with each row.
template <typename Visit>
void for_each_operation(const Visit& visit) {
  std::apply([&visit](const auto&... rows) { (visit(rows), ...); }, kSimpleOperations);
}

}  // namespace varve::control
