// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

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

/// A verified connection to the daemon that holds a repository: sends requests and receives
/// replies. Not thread-safe.
/// Errors: kUnavailable with advice if the daemon does not answer.
class DaemonConnection {
 public:
  /// Connects to the daemon, and verifies the daemon, as Client::connect(). Errors: likewise.
  [[nodiscard]] static Result<DaemonConnection> open(const std::string& repository,
                                                     const ClientPatience& patience);

  /// Returns the identity that the daemon reported on connecting.
  [[nodiscard]] const Identity& identity() const { return identity_; }
  /// Returns the daemon's process id, as the kernel reports it.
  [[nodiscard]] pid_t process() const { return process_; }
  /// Returns the daemon's user, as the kernel reports it.
  [[nodiscard]] uid_t user() const { return user_; }
  /// Returns the last Reply::incomplete of the daemon; "" for none.
  [[nodiscard]] const std::string& incomplete() const { return incomplete_; }

  /// Sends a request, with the descriptor `passed` unless it is -1. Connects again first if the
  /// daemon has dropped the idle connection.
  [[nodiscard]] Result<void> send(const Request& request, int passed = -1);
  /// Sends a further message of the present request.
  [[nodiscard]] Result<void> send_more(const Request& message);
  /// Returns the next reply that is more than a heartbeat. The reply may be an error of the daemon.
  /// Errors: kInterrupted once `stop` (a descriptor, or -1) is readable.
  [[nodiscard]] Result<Reply> receive_any(int stop);
  /// As receive_any(), but returns an error of the daemon as an error.
  [[nodiscard]] Result<Reply> receive(int stop);
  /// Sends a request and returns the reply.
  [[nodiscard]] Result<Reply> ask(const Request& request);
  /// Sends a request unknown to older Varves. `what` names the request in the error of older().
  [[nodiscard]] Result<Reply> ask_new(const Request& request, const char* what);

  /// Ends the present request without a further message. Returns `reason` once the daemon has
  /// dropped the work of the request.
  [[nodiscard]] Error refuse_end(Error reason, int stop);
  /// Returns the error for a daemon of an older Varve. `lack`: the missing feature.
  [[nodiscard]] Error older(std::string_view lack) const;

 private:
  DaemonConnection(std::string repository, const ClientPatience& patience)
      : repository_(std::move(repository)), patience_(patience) {}
  [[nodiscard]] Result<void> connect();
  /// Receives the next line, of any kind.
  [[nodiscard]] Result<std::string> receive_sign_of_life(int stop);
  [[nodiscard]] Error silent() const;

  std::string repository_;
  ClientPatience patience_;
  base::UniqueFd socket_;
  pid_t process_ = 0;
  uid_t user_ = 0;
  Identity identity_;
  std::string incomplete_;
};

}  // namespace varve::control
