// SPDX-License-Identifier: Apache-2.0
// A small HTTP server on the loopback interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/thread_pool.h"
#include "base/unique_fd.h"
#include "varve/result.h"
#include "web/exchange.h"
#include "web/gate.h"
#include "web/reception.h"
#include "web/request.h"

namespace varve::web {

/// Number of requests answered at the same time.
inline constexpr std::size_t kServerThreads = 16;
/// Number of admitted requests waiting for a thread. Further requests are refused.
inline constexpr std::size_t kWaitingMax = 64;

/// Listens on 127.0.0.1, and on ::1 if the machine has IPv6. Answers one request for each
/// connection. A browser has ten seconds to send the request. Requests not admitted by the gate are
/// refused in the thread of run(), and hold no answering thread.
class Server {
 public:
  /// Answers an admitted request, with the path below Gate::home(). Called from several threads.
  using Handler = std::function<void(const Request&, Exchange&)>;

  /// Begins to listen. Port 0: any free port.
  /// Errors: kBusy if the port is taken; kIo.
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(std::uint16_t port);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Returns the address to open, with the token.
  [[nodiscard]] std::string address() const;

  /// Answers requests until stop(). Then cuts the connections off.
  void run(const Handler& handler);
  /// Ends run(). Thread-safe.
  void stop();

 private:
  Server(std::vector<base::UniqueFd> listeners, base::UniqueFd wake, std::uint16_t port,
         GateSecrets secrets)
      : listeners_(std::move(listeners)),
        wake_(std::move(wake)),
        port_(port),
        gate_(std::move(secrets), port) {}
  void accept_connections(Reception& reception) const;
  /// Takes a request to a thread. Returns false if too many wait.
  [[nodiscard]] bool admit(Received& received, base::ThreadPool& workers, const Handler& handler);
  void serve(int socket, const Request& request, const Handler& handler);

  const std::vector<base::UniqueFd> listeners_;
  const base::UniqueFd wake_;
  const std::uint16_t port_;
  const Gate gate_;
  std::mutex mutex_;  // Guards the members below. Innermost.
  std::set<int> connections_;
  bool stopping_ = false;
};

}  // namespace varve::web
