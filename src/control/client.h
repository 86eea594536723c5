// SPDX-License-Identifier: Apache-2.0
// A command's end of the control socket.
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

/// How long a command waits for a daemon. One that works on a request says so every few seconds,
/// so only a daemon that is stopped or hangs is silent.
struct ClientPatience {
  std::chrono::milliseconds silence = kSilenceMax;
  std::chrono::milliseconds stopped = kStoppedMax;
};

/// Talks to the daemon that holds a repository. Not thread-safe. Errors of the daemon come
/// back as it met them; kBusy with ETIMEDOUT says that it does not answer, and what to do.
class Client {
 public:
  /// Connects, and makes sure that the daemon is of this protocol, has this repository, and is of
  /// the caller, the repository's owner or root.
  /// Errors: kNotFound if no daemon has the repository mounted for writing; kUnsupported for one
  /// of another protocol; kNotPermitted.
  [[nodiscard]] static Result<Client> connect(const std::string& repository,
                                              const ClientPatience& patience = {});

  /// Who answers, as it said when it was connected to.
  [[nodiscard]] const Identity& identity() const { return identity_; }
  /// Process of the daemon, as the kernel says.
  [[nodiscard]] pid_t process() const { return process_; }

  [[nodiscard]] Result<void> ping();
  /// Makes all open versions durable. An error names those for which that failed.
  [[nodiscard]] Result<void> sync();
  [[nodiscard]] Result<SealReply> seal(const SealRequest& request);
  [[nodiscard]] Result<VersionInfo> open(const OpenRequest& request);
  [[nodiscard]] Result<VersionInfo> clone(const OpenRequest& request);
  [[nodiscard]] Result<RepositoryStats> stats();
  /// Returns the open versions of the series of that name, with their present sizes.
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(const std::string& series);
  [[nodiscard]] Result<DeletionForecast> remove(const DeleteRequest& request);
  [[nodiscard]] Result<void> lock(const LockRequest& request);
  /// Waits until it is done, or (kInterrupted) `stop` becomes readable: the daemon stops once
  /// this Client is gone. `progress` is called now and then.
  [[nodiscard]] Result<ArrangeReport> arrange(
      const ArrangeRequest& request, int stop,
      const std::function<void(const ArrangeProgress&)>& progress);
  /// Stores `settings` if there are any; returns those in force.
  [[nodiscard]] Result<ArrangeSettings> arrange_settings(
      const std::optional<ArrangeSettings>& settings);

 private:
  Client(std::string repository, const ClientPatience& patience)
      : repository_(std::move(repository)), patience_(patience) {}
  [[nodiscard]] Result<void> connect();
  [[nodiscard]] Result<void> send(const Request& request);
  [[nodiscard]] Result<Reply> ask(const Request& request);
  [[nodiscard]] Result<Reply> receive(int stop);
  [[nodiscard]] Result<std::string> receive_sign_of_life(int stop);
  [[nodiscard]] Error silent() const;
  std::string repository_;
  ClientPatience patience_;
  base::UniqueFd socket_;
  pid_t process_ = 0;
  Identity identity_;
};

}  // namespace varve::control
