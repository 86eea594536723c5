// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the control socket.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "control/protocol.h"
#include "varve/result.h"

namespace varve::control {

/// What the daemon does for each request. Called from threads of the Server, several at once.
struct Handlers {
  /// While it waits for writers it asks `cancelled` now and then, and gives up on true: the
  /// daemon is ending, or the command that asked is gone.
  std::function<Result<SealReply>(const SealRequest&, const std::function<bool()>& cancelled)> seal;
  std::function<Result<VersionInfo>(const OpenRequest&)> open;
  std::function<Result<VersionInfo>(const OpenRequest&)> clone;
  std::function<Result<RepositoryStats>()> stats;
  std::function<Result<DeletionForecast>(const DeleteRequest&)> remove;
  std::function<Result<void>(const LockRequest&)> lock;
  /// Asks `cancelled` often, and stops on true. `progress` may be called from its thread.
  std::function<Result<ArrangeReport>(const ArrangeRequest&, const std::function<bool()>& cancelled,
                                      const std::function<void(const ArrangeProgress&)>& progress)>
      arrange;
  /// Stores the settings that it is given, and returns those in force.
  std::function<Result<ArrangeSettings>(const std::optional<ArrangeSettings>&)> settings;
};

/// Answers requests on REPO/control.sock until it is destroyed. One thread accepts, and each
/// connection has one of its own while it lasts. Only the owner of the repository and root
/// can connect (mode 0600).
class Server {
 public:
  /// The caller must hold the repository's lock.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const std::string& repository,
                                                             Handlers handlers);
  /// Asks waiting handlers to stop, waits for them and removes the socket.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  Server(std::string repository, Handlers handlers, base::UniqueFd listener, base::UniqueFd wake);
  struct Connection {
    base::UniqueFd socket;
    std::thread thread;
    bool done = false;  // Under mutex_.
  };
  void accept_loop();
  void serve(Connection& connection);
  [[nodiscard]] Reply answer(const std::string& line, int socket);
  /// Deleting, locking and arranging.
  [[nodiscard]] Reply answer_upkeep(const Request& request, int socket);
  [[nodiscard]] bool abandoned(int socket) const;
  void join_finished();

  const std::string repository_;
  const Handlers handlers_;
  base::UniqueFd listener_;
  base::UniqueFd wake_;  // An eventfd that is readable once the server stops.
  std::mutex mutex_;
  std::list<Connection> connections_;
  std::thread acceptor_;
};

}  // namespace varve::control
