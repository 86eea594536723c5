// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the control socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "control/protocol.h"
#include "control/repository_control.h"
#include "control/socket.h"
#include "varve/result.h"

namespace varve::control {

/// The daemon's functions for the requests. Threads of the Server call the functions concurrently.
struct Handlers {
  /// Fills in the mount's part of the identity. Must not wait. May be unset.
  std::function<void(Identity&)> identify{};
  /// Called every ten seconds. Must not wait. May be unset.
  std::function<void()> check_surroundings{};
  /// Seals a version. While the handler waits for writers, it calls `cancelled` now and then, and
  /// gives up on true: the daemon is ending, or the command has disconnected.
  std::function<Result<SealReply>(const SealRequest&, const std::function<bool()>& cancelled)> seal;
  /// Arranges a series. Calls `cancelled` often, and stops on true. May call `progress` from
  /// another thread.
  std::function<Result<ArrangeReport>(const ArrangeRequest&, const std::function<bool()>& cancelled,
                                      const std::function<void(const ArrangeProgress&)>& progress)>
      arrange;
  /// Stores a directory. Stops and reports as `arrange`.
  std::function<Result<StoreTaskReply>(const StoreTask&, const std::function<bool()>& cancelled,
                                       const std::function<void(const TransferProgress&)>&)>
      store;
  /// As RepositoryControl::write_left_files(). May be unset.
  std::function<Result<void>()> write_left_files{};
  /// The functions for the simple operations; see set().
  std::map<Operation, std::function<Reply(const Request&)>> simple{};

  /// Sets the function for a simple operation: it takes and returns what the operation's function
  /// of RepositoryControl does.
  template <Operation kOperation, typename Function>
  void set(Function run) {
    simple[kOperation] = [run = std::move(run)](const Request& request) {
      return answer_simple(simple_operation<kOperation>(), request, run);
    };
  }
};

/// Limits on the resources that clients can use.
struct ServerLimits {
  std::size_t connections_max = 32;
  std::chrono::milliseconds first_request{10'000};  ///< Limit for a complete first request.
  std::chrono::milliseconds idle{60'000};           ///< Limit for each further complete request.
  std::chrono::milliseconds write{10'000};          ///< Limit for a client to take an answer.
  /// Interval between the heartbeats of a long operation.
  std::chrono::milliseconds heartbeat{2'000};
};

/// Answers requests on the repository's control socket until destroyed. The loop's thread accepts
/// connections, receives requests and sends heartbeats during long operations. Each request except
/// kHello runs on a worker thread. Only the daemon's user and root get answers. The
/// server disconnects clients that send or read nothing.
class Server {
 public:
  /// Starts the server. The caller must hold the repository's lock.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const std::string& repository,
                                                             Handlers handlers,
                                                             const ServerLimits& limits = {});
  /// Asks running handlers to stop, waits for the handlers and removes the socket. Waits for no
  /// client.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { kIdle, kWorking, kAnswered, kBroken };
  struct Connection {
    base::UniqueFd socket;
    std::string received;   // Bytes after the last request.
    base::UniqueFd passed;  // A descriptor received with the bytes.
    Clock::time_point deadline;
    Clock::time_point next_heartbeat;
    std::thread worker;
    std::mutex sending;  // Taken last. Guards `state`, and sending while a worker runs.
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
  [[nodiscard]] Reply answer_change(const Request& request, Connection& connection);
  /// Answers requests to delete, lock, claim, rename, sync and arrange.
  [[nodiscard]] Reply answer_upkeep(const Request& request, Connection& connection);
  /// Reports to a client that the whole stream is stored. Returns whether the client confirms.
  [[nodiscard]] bool goes_on(Connection& connection);
  [[nodiscard]] Reply hello() const;
  [[nodiscard]] bool abandoned(int socket) const;

  const Handlers handlers_;
  const ServerLimits limits_;
  Listener listener_;
  base::UniqueFd stop_;            // An eventfd that is readable once the server stops.
  base::UniqueFd nudge_;           // An eventfd that is readable when a worker has answered.
  base::UniqueFd reserve_;         // Closed to accept and refuse a client when descriptors run out.
  Clock::time_point next_scan_{};  // The time of the next check_surroundings.
  // Time before which the loop does not accept; set after a failure.
  Clock::time_point accept_again_{};
  std::list<Connection> connections_;  // Owned by the loop; a worker uses only its own connection.
  std::thread loop_;
};

}  // namespace varve::control
