// SPDX-License-Identifier: Apache-2.0
// Connections that have not sent their whole request yet.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "web/request.h"

namespace varve::web {

/// Number of connections whose requests are received at the same time. A further one takes the
/// place of the oldest: clients that only connect keep nobody out.
inline constexpr std::size_t kReceivingMax = 128;

/// A connection with all of its request, or with the status that answers a bad one.
struct Received {
  base::UniqueFd socket;
  ParsedRequest parsed;
};

/// Receives the requests of many connections in the thread of the caller, so that slow clients hold
/// no thread. A client has ten seconds to send its request. Not thread-safe.
class Reception {
 public:
  /// Takes a new, non-blocking connection.
  void add(base::UniqueFd socket);
  /// Takes a connection that got its whole answer, and closes it once the client has read that:
  /// data that nothing has read would make the kernel cut the answer off.
  void drain(base::UniqueFd socket);

  /// Adds what poll() must wait for to `waits`.
  void add_waits(std::vector<struct pollfd>& waits) const;
  /// Returns the longest time for poll(), in milliseconds; -1 without connections.
  [[nodiscard]] int wait_ms() const;
  /// Receives what has come, and returns the connections that need an answer: with a request, or
  /// with a status. Never waits.
  [[nodiscard]] std::vector<Received> receive();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Connection {
    base::UniqueFd socket;
    Time end;
    bool drains = false;
    std::string bytes = {};
  };
  void put(Connection connection);
  /// Reads what has come. Returns false if the connection has ended.
  static bool read(Connection& connection, ParsedRequest& parsed);

  std::deque<Connection> connections_;  // The oldest first.
};

}  // namespace varve::web
