// SPDX-License-Identifier: Apache-2.0
// The command's end of the control socket.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "control/patience.h"
#include "control/protocol.h"
#include "varve/result.h"

namespace varve::control {

/// Time limits for waiting for a daemon. A working daemon reports every few seconds, so only a
/// stopped or hanging daemon is silent.
struct ClientPatience {
  std::chrono::milliseconds silence = kSilenceMax;
  std::chrono::milliseconds stopped = kStoppedMax;
};

/// A connection to the daemon that holds a repository. Not thread-safe.
/// Errors: the daemon's errors, unchanged; kUnavailable with advice if the daemon does not answer.
class Client {
 public:
  /// Connects to the daemon. Verifies that the daemon speaks this protocol, holds this repository,
  /// and runs as the caller, the repository's owner or root.
  /// Errors: kNotFound if no daemon has the repository mounted for writing; kUnsupported if the
  /// daemon speaks another protocol; kNotPermitted if any other check fails.
  [[nodiscard]] static Result<Client> connect(const std::string& repository,
                                              const ClientPatience& patience = {});

  /// Returns the identity that the daemon reported on connecting.
  [[nodiscard]] const Identity& identity() const { return identity_; }
  /// Returns the daemon's process id, as the kernel reports it.
  [[nodiscard]] pid_t process() const { return process_; }
  /// Returns the daemon's user, as the kernel reports it.
  [[nodiscard]] uid_t user() const { return user_; }

  [[nodiscard]] Result<void> ping();
  /// Makes all open versions durable. The error message names the versions that are not durable.
  [[nodiscard]] Result<void> sync();
  /// Errors: kInterrupted once `stop` (a descriptor, or -1) is readable; as for arrange().
  [[nodiscard]] Result<SealReply> seal(const SealRequest& request, int stop = -1);
  [[nodiscard]] Result<VersionInfo> open(const OpenRequest& request);
  [[nodiscard]] Result<VersionInfo> clone(const OpenRequest& request);
  [[nodiscard]] Result<RepositoryStats> stats();
  /// Returns the metrics of the daemon.
  /// Errors: kUnsupported if the daemon belongs to an older Varve without metrics.
  [[nodiscard]] Result<std::vector<MetricSample>> metrics();
  /// Returns the open versions of the named series, with their present sizes.
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(const std::string& series);
  [[nodiscard]] Result<DeletionForecast> remove(const DeleteRequest& request);
  [[nodiscard]] Result<void> lock(const LockRequest& request);
  /// Errors: kUnsupported if the daemon belongs to an older Varve without this request.
  [[nodiscard]] Result<void> claim(const ClaimRequest& request);
  /// Errors: as claim().
  [[nodiscard]] Result<void> rename(const RenameRequest& request);
  /// Asks the daemon to store a directory or a stream. Calls `progress` now and then.
  /// Errors: as claim(); kInterrupted once `stop` (a descriptor) is readable. The daemon stops once
  /// this Client is destroyed.
  [[nodiscard]] Result<StoreTaskReply> store(
      const StoreTask& task, int stop,
      const std::function<void(const TransferProgress&)>& progress);
  /// Arranges a series and waits for the report. Calls `progress` now and then.
  /// Errors: kInterrupted once `stop` (a descriptor) is readable. The daemon stops arranging once
  /// this Client is destroyed.
  [[nodiscard]] Result<ArrangeReport> arrange(
      const ArrangeRequest& request, int stop,
      const std::function<void(const ArrangeProgress&)>& progress);
  /// Stores `settings`, if given. Returns the current settings.
  [[nodiscard]] Result<ArrangeSettings> arrange_settings(
      const std::optional<ArrangeSettings>& settings);
  /// Changes settings as the request says. Returns the present settings.
  /// Errors: kUnsupported if the daemon belongs to an older Varve without this request.
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
  Client(std::string repository, const ClientPatience& patience)
      : repository_(std::move(repository)), patience_(patience) {}
  [[nodiscard]] Result<void> connect();
  /// Sends a request, with the descriptor `passed` unless it is -1.
  [[nodiscard]] Result<void> send(const Request& request, int passed = -1);
  [[nodiscard]] Result<Reply> ask(const Request& request);
  /// Sends a request unknown to older Varves. `what` names the request in the error of older().
  [[nodiscard]] Result<Reply> ask_new(const Request& request, const char* what);
  /// Returns the next reply that is more than a heartbeat. The reply may be an error of the daemon.
  [[nodiscard]] Result<Reply> receive_any(int stop);
  [[nodiscard]] Error refuse_end(Error reason, int stop);
  /// As receive_any(), but returns an error of the daemon as an error.
  [[nodiscard]] Result<Reply> receive(int stop);
  [[nodiscard]] Result<std::string> receive_sign_of_life(int stop);
  [[nodiscard]] Error silent() const;
  /// Returns the error for a daemon of an older Varve. `lack`: the missing feature.
  [[nodiscard]] Error older(std::string_view lack) const;
  std::string repository_;
  ClientPatience patience_;
  base::UniqueFd socket_;
  pid_t process_ = 0;
  uid_t user_ = 0;
  Identity identity_;
};

}  // namespace varve::control
