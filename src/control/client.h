// SPDX-License-Identifier: Apache-2.0
// A command's end of the control socket.
#pragma once

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

 private:
  explicit Client(base::UniqueFd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Result<Reply> ask(const Request& request);
  base::UniqueFd socket_;
};

}  // namespace varve::control
