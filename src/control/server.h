// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the control socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "control/protocol.h"
#include "control/socket.h"
#include "varve/result.h"

namespace varve::control {

/// What the daemon does for each request. Called from threads of the Server, several at once.
struct Handlers {
  /// Fills in what the daemon knows of itself. Must not wait. May be unset.
  std::function<void(Identity&)> identify{};
  /// While it waits for writers it asks `cancelled` now and then, and gives up on true: the
  /// daemon is ending, or the command that asked is gone.
  std::function<Result<SealReply>(const SealRequest&, const std::function<bool()>& cancelled)> seal;
  std::function<Result<VersionInfo>(const OpenRequest&)> open;
  std::function<Result<VersionInfo>(const OpenRequest&)> clone;
  std::function<Result<RepositoryStats>()> stats;
  /// Returns the open versions of the series of that name, with their present sizes.
  std::function<Result<std::vector<VersionInfo>>(const std::string& series)> open_versions;
  std::function<Result<void>()> sync;
  std::function<Result<DeletionForecast>(const DeleteRequest&)> remove;
  std::function<Result<void>(const LockRequest&)> lock;
  /// Asks `cancelled` often, and stops on true. `progress` may be called from its thread.
  std::function<Result<ArrangeReport>(const ArrangeRequest&, const std::function<bool()>& cancelled,
                                      const std::function<void(const ArrangeProgress&)>& progress)>
      arrange;
  /// Stores the settings that it is given, and returns those in force.
  std::function<Result<ArrangeSettings>(const std::optional<ArrangeSettings>&)> settings;
};

/// Bounds on what clients can take of the daemon.
struct ServerLimits {
  std::size_t connections_max = 32;
  std::chrono::milliseconds first_request{10'000};  ///< Until a first request is whole.
  std::chrono::milliseconds idle{60'000};           ///< Until a further request is whole.
  std::chrono::milliseconds write{10'000};          ///< Until a client takes an answer.
  std::chrono::milliseconds heartbeat{2'000};       ///< Between the signs of a long operation.
};

/// Answers requests on the repository's control socket until it is destroyed. One thread accepts
/// connections, receives requests and says for long operations that they go on; each request that
/// is more than a question has a thread while the daemon works on it. Only the daemon's user and
/// root are answered. Clients that send or read nothing are disconnected.
class Server {
 public:
  /// The caller must hold the repository's lock.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const std::string& repository,
                                                             Handlers handlers,
                                                             const ServerLimits& limits = {});
  /// Asks waiting handlers to stop, waits for them and removes the socket. Waits for no client.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { kIdle, kWorking, kAnswered, kBroken };
  struct Connection {
    base::UniqueFd socket;
    std::string received;  // What follows the last request.
    Clock::time_point deadline;
    Clock::time_point next_heartbeat;
    std::thread worker;
    std::mutex sending;  // Taken last. Guards what is sent while a worker runs, and `state`.
    State state = State::kIdle;
  };

  Server(Handlers handlers, const ServerLimits& limits, Listener listener);
  [[nodiscard]] Result<void> run();
  void loop();
  void turn();
  [[nodiscard]] int wait_time(Clock::time_point now) const;
  void accept_clients();
  void admit(base::UniqueFd socket);
  void refuse_for_descriptors();
  void collect_answered();
  void receive(Connection& connection);
  void serve_received(Connection& connection);
  void serve(Connection& connection, const std::string& line);
  void start_worker(Connection& connection, Request request);
  void work(Connection& connection, const Request& request);
  void send_heartbeats(Clock::time_point now);
  [[nodiscard]] Reply answer(const Request& request, Connection& connection);
  /// Deleting, locking and arranging.
  [[nodiscard]] Reply answer_upkeep(const Request& request, Connection& connection);
  [[nodiscard]] Reply hello() const;
  [[nodiscard]] bool abandoned(int socket) const;

  const Handlers handlers_;
  const ServerLimits limits_;
  Listener listener_;
  base::UniqueFd stop_;     // An eventfd that is readable once the server stops.
  base::UniqueFd nudge_;    // An eventfd that is readable when a worker has answered.
  base::UniqueFd reserve_;  // Closed to accept and refuse a client when descriptors run out.
  Clock::time_point accept_again_{};   // Accepting failed; not before this time.
  std::list<Connection> connections_;  // The loop's; a worker touches its own connection only.
  std::thread loop_;
};

}  // namespace varve::control
