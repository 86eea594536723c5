// SPDX-License-Identifier: Apache-2.0
// The command's end of the control socket.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "control/daemon_connection.h"
#include "control/protocol.h"
#include "control/repository_control.h"
#include "varve/result.h"

namespace varve::control {

/// The requests of a command to the daemon that holds a repository. Not thread-safe.
/// Errors: the daemon's errors, unchanged; kUnavailable with advice if the daemon does not answer.
class Client {
 public:
  /// Connects to the daemon. Verifies that the daemon speaks the same protocol, has the
  /// repository, and runs as the caller, the repository's owner or root.
  /// Errors: kNotFound if no daemon has the repository mounted for writing; kUnsupported if the
  /// daemon speaks another protocol; kNotPermitted if any other check fails.
  [[nodiscard]] static Result<Client> connect(const std::string& repository,
                                              const ClientPatience& patience = {});

  /// Returns the identity that the daemon reported on connecting.
  [[nodiscard]] const Identity& identity() const { return connection_.identity(); }
  /// Returns the daemon's process id, as the kernel reports it.
  [[nodiscard]] pid_t process() const { return connection_.process(); }
  /// Returns the daemon's user, as the kernel reports it.
  [[nodiscard]] uid_t user() const { return connection_.user(); }
  /// Returns the error kIncomplete if the daemon has said so after a request of this connection.
  [[nodiscard]] Result<void> incomplete() const {
    if (connection_.incomplete().empty()) return {};
    return Error(ErrorCode::kIncomplete, connection_.incomplete());
  }

  /// Carries out a simple operation: takes and returns what the operation's function of
  /// RepositoryControl does.
  /// Errors: kUnsupported if the daemon belongs to an older Varve without the operation.
  template <Operation kOperation, typename... In>
  [[nodiscard]] auto ask(const In&... in) {
    constexpr const auto& row = simple_operation<kOperation>();
    using Answer = std::invoke_result_t<decltype(row.run), RepositoryControl&, const In&...>;
    Request request;
    request.operation = kOperation;
    if constexpr (kIsMember<decltype(row.in)>) ((request.*row.in = in), ...);
    auto reply = exchange(request, row.newer);
    if (!reply) return Answer(std::move(reply).error());
    if constexpr (kIsMember<decltype(row.out)>) {
      auto& answer = (*reply).*row.out;
      return answer ? Answer(*std::move(answer)) : Answer(lacks(row.answer));
    } else {
      return Answer();
    }
  }

  /// Errors: kInterrupted once `stop` (a descriptor, or -1) is readable; as for arrange().
  [[nodiscard]] Result<SealReply> seal(const SealRequest& request, int stop = -1);
  /// Asks the daemon to store a directory or a stream. Calls `progress` now and then.
  /// Errors: kUnsupported if the daemon belongs to an older Varve without such stores; kInterrupted
  /// once `stop` (a descriptor) is readable. The daemon stops once
  /// the Client is destroyed.
  [[nodiscard]] Result<StoreTaskReply> store(
      const StoreTask& task, int stop,
      const std::function<void(const TransferProgress&)>& progress);
  /// Arranges a series and waits for the report. Calls `progress` now and then.
  /// Errors: kInterrupted once `stop` (a descriptor) is readable. The daemon stops arranging once
  /// the Client is destroyed.
  [[nodiscard]] Result<ArrangeReport> arrange(
      const ArrangeRequest& request, int stop,
      const std::function<void(const ArrangeProgress&)>& progress);

 private:
  explicit Client(DaemonConnection connection) : connection_(std::move(connection)) {}
  /// Sends a request and returns the reply. `newer`: see SimpleOperation::newer.
  [[nodiscard]] Result<Reply> exchange(const Request& request, const char* newer);
  /// Returns the error for an answer without its result.
  [[nodiscard]] static Error lacks(std::string_view what);

  DaemonConnection connection_;
};

}  // namespace varve::control
