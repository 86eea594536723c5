// SPDX-License-Identifier: Apache-2.0
// The command's end of the control socket.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/daemon_connection.h"
#include "control/protocol.h"
#include "varve/result.h"

namespace varve::control {

/// The requests of a command to the daemon that holds a repository. Not thread-safe.
/// Errors: the daemon's errors, unchanged; kUnavailable with advice if the daemon does not answer.
class Client {
 public:
  /// Connects to the daemon. Verifies that the daemon speaks the same protocol, has the
  /// repository, and runs as the caller, the repository's owner or root.
  /// Errors: kNotFound if no daemon has the repository mounted for writing; kUnsupported if the
  /// daemon speaks another protocol; kNotPermitted if any other check fails.
  [[nodiscard]] static Result<Client> connect(const std::string& repository,
                                              const ClientPatience& patience = {});

  /// Returns the identity that the daemon reported on connecting.
  [[nodiscard]] const Identity& identity() const { return connection_.identity(); }
  /// Returns the daemon's process id, as the kernel reports it.
  [[nodiscard]] pid_t process() const { return connection_.process(); }
  /// Returns the daemon's user, as the kernel reports it.
  [[nodiscard]] uid_t user() const { return connection_.user(); }

  /// Makes all open versions durable. The error message names the versions that are not durable.
  [[nodiscard]] Result<void> sync();
  /// Errors: kInterrupted once `stop` (a descriptor, or -1) is readable; as for arrange().
  [[nodiscard]] Result<SealReply> seal(const SealRequest& request, int stop = -1);
  [[nodiscard]] Result<VersionInfo> open(const OpenRequest& request);
  [[nodiscard]] Result<VersionInfo> clone(const OpenRequest& request);
  /// Returns the metrics of the daemon.
  /// Errors: kUnsupported if the daemon belongs to an older Varve without metrics.
  [[nodiscard]] Result<std::vector<MetricSample>> metrics();
  /// Returns the open versions of the named series, with their present sizes.
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(const std::string& series);
  [[nodiscard]] Result<DeletionForecast> remove(const DeleteRequest& request);
  [[nodiscard]] Result<void> lock(const LockRequest& request);
  /// Errors: kUnsupported if the daemon belongs to an older Varve without the request.
  [[nodiscard]] Result<void> claim(const ClaimRequest& request);
  /// Errors: as claim().
  [[nodiscard]] Result<void> rename(const RenameRequest& request);
  /// Asks the daemon to store a directory or a stream. Calls `progress` now and then.
  /// Errors: as claim(); kInterrupted once `stop` (a descriptor) is readable. The daemon stops once
  /// the Client is destroyed.
  [[nodiscard]] Result<StoreTaskReply> store(
      const StoreTask& task, int stop,
      const std::function<void(const TransferProgress&)>& progress);
  /// Arranges a series and waits for the report. Calls `progress` now and then.
  /// Errors: kInterrupted once `stop` (a descriptor) is readable. The daemon stops arranging once
  /// the Client is destroyed.
  [[nodiscard]] Result<ArrangeReport> arrange(
      const ArrangeRequest& request, int stop,
      const std::function<void(const ArrangeProgress&)>& progress);
  /// Stores `settings`, if given. Returns the current settings.
  [[nodiscard]] Result<ArrangeSettings> arrange_settings(
      const std::optional<ArrangeSettings>& settings);
  /// Changes settings as the request says. Returns the present settings.
  /// Errors: kUnsupported if the daemon belongs to an older Varve without the request.
  [[nodiscard]] Result<SeriesSettings> series_settings(const SeriesSettingsRequest& request);
  /// Chooses the index of the pool, if the request says so. Returns the present choice.
  /// Errors: as series_settings().
  [[nodiscard]] Result<PoolIndexChoice> pool_index(const PoolIndexRequest& request);
  /// Errors: as series_settings().
  [[nodiscard]] Result<UpkeepSettings> upkeep(const UpkeepRequest& request);
  [[nodiscard]] Result<std::vector<PoolStream>> pool_streams();
  /// Errors: as series_settings().
  [[nodiscard]] Result<DamageReply> known_damage(const DamageRequest& request);
  [[nodiscard]] Result<void> adopt_keys(const KeysRequest& request);

 private:
  explicit Client(DaemonConnection connection) : connection_(std::move(connection)) {}

  DaemonConnection connection_;
};

}  // namespace varve::control
