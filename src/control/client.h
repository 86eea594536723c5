// SPDX-License-Identifier: Apache-2.0
// A command's end of the control socket.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "control/protocol.h"
#include "varve/result.h"

namespace varve::control {

/// Talks to the daemon that holds a repository. Not thread-safe. Errors of the daemon come
/// back as it met them.
class Client {
 public:
  /// kNotFound if no daemon has the repository mounted for writing.
  [[nodiscard]] static Result<Client> connect(const std::string& repository);

  [[nodiscard]] Result<void> ping();
  [[nodiscard]] Result<SealReply> seal(const SealRequest& request);
  [[nodiscard]] Result<VersionInfo> open(const OpenRequest& request);
  [[nodiscard]] Result<VersionInfo> clone(const OpenRequest& request);
  [[nodiscard]] Result<RepositoryStats> stats();
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
  explicit Client(base::UniqueFd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Result<Reply> ask(const Request& request);
  [[nodiscard]] Result<Reply> receive(int stop);
  base::UniqueFd socket_;
};

}  // namespace varve::control
