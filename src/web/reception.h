// SPDX-License-Identifier: Apache-2.0
// Connections without a complete request.
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

/// Number of connections whose requests are received at the same time. A further connection takes
/// the place of the oldest: clients that only connect do not keep new clients out.
inline constexpr std::size_t kReceivingMax = 128;

/// A connection with a complete request, or with the status of the answer to a bad request.
struct Received {
  base::UniqueFd socket;
  ParsedRequest parsed;
};

/// Receives the requests of many connections in the thread of the caller, so slow clients hold no
/// thread. A client has ten seconds to send the request. Not thread-safe.
class Reception {
 public:
  /// Takes a new, non-blocking connection.
  void add(base::UniqueFd socket);
  /// Takes a connection after the whole answer was sent, and closes the connection once the client
  /// has read the answer: with unread data in the socket, the kernel would cut the answer off.
  void drain(base::UniqueFd socket);

  /// Adds the connections' conditions for poll() to `waits`.
  void add_waits(std::vector<struct pollfd>& waits) const;
  /// Returns the longest time for poll(), in milliseconds; -1 without connections.
  [[nodiscard]] int wait_ms() const;
  /// Reads the bytes received so far, and returns the connections ready for an answer: with a
  /// request, or with a status. Never waits.
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
  /// Reads the bytes received so far. Returns false if the connection has ended.
  static bool read(Connection& connection, ParsedRequest& parsed);

  std::deque<Connection> connections_;  // The oldest first.
};

}  // namespace varve::web
