// SPDX-License-Identifier: Apache-2.0
// The control server's answers to requests.
#include <sys/socket.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "control/server.h"
#include "control/socket.h"

namespace varve::control {
namespace {

constexpr std::chrono::milliseconds kProgressPause{200};

template <typename T>
void put(Result<T> result, std::optional<T>& place, Reply& reply) {
  if (result) {
    place = std::move(*result);
  } else {
    reply.error = std::move(result).error();
  }
}

/// Sends progress to a client, not too often.
class Teller {
 public:
  /// Lifetime: `sending` outlives the object.
  Teller(int socket, std::mutex& sending) : socket_(socket), sending_(sending) {}

  void tell(const Reply& so_far) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told_at_ < kProgressPause) return;
    told_at_ = now;
    const std::lock_guard lock(sending_);
    const auto sent = send_line_now(socket_, encode(so_far));
    // A client that reads too slowly may miss progress reports. A partly sent line ends the
    // connection. `cancelled` detects a disconnected client.
    if (!sent && sent.error().code() != ErrorCode::kBusy) ::shutdown(socket_, SHUT_RDWR);
  }

 private:
  const int socket_;
  std::mutex& sending_;
  std::chrono::steady_clock::time_point told_at_ = std::chrono::steady_clock::now();
};

}  // namespace

Reply Server::answer(const Request& request, Connection& connection) {
  Reply reply = answer_change(request, connection);
  const bool only_reads = request.operation == Operation::kMetrics ||
                          request.operation == Operation::kOpenVersions ||
                          request.operation == Operation::kPoolStreams;
  if (reply.error || only_reads || !handlers_.write_left_files) return reply;
  const auto written = handlers_.write_left_files();
  if (!written) reply.incomplete = written.error().message();
  return reply;
}

Reply Server::answer_change(const Request& request, Connection& connection) {
  Reply reply;
  switch (request.operation) {
    case Operation::kSeal: {
      auto outcome =
          handlers_.seal(request.seal, [&] { return abandoned(connection.socket.get()); });
      if (outcome) {
        reply.version = std::move(outcome->sealed);
        reply.next = std::move(outcome->next);
        reply.warning = std::move(outcome->warning);
      } else {
        reply.error = outcome.error();
      }
      break;
    }
    default:
      return answer_upkeep(request, connection);
  }
  return reply;
}

// A signal often ends a whole pipeline: the end of a stream may be that of its writer, and then the
// command is gone, too. The daemon sees the two ends in any order.
bool Server::goes_on(Connection& connection) {
  Reply reply;
  reply.all_read = true;
  {
    const std::lock_guard lock(connection.sending);
    const auto sent = send_line(connection.socket.get(), encode(reply), limits_.write, stop_.get());
    if (!sent || !connection.received.empty()) return false;
  }
  const auto line = receive_line(connection.socket.get(), limits_.idle, stop_.get());
  const auto answer = line ? decode_request(*line) : Result<Request>(line.error());
  return answer && answer->operation == Operation::kGoOn;
}

Reply Server::answer_upkeep(const Request& request, Connection& connection) {
  Reply reply;
  switch (request.operation) {
    case Operation::kArrange: {
      Teller tell(connection.socket.get(), connection.sending);
      put(handlers_.arrange(
              request.arrange, [&] { return abandoned(connection.socket.get()); },
              [&](const ArrangeProgress& done) {
                Reply so_far;
                so_far.progress = done;
                tell.tell(so_far);
              }),
          reply.arranged, reply);
      break;
    }
    case Operation::kStore:
    case Operation::kStoreStream: {
      Teller tell(connection.socket.get(), connection.sending);
      StoreTask task = request.store;
      if (task.stream) task.stream->confirm = [&] { return goes_on(connection); };
      put(handlers_.store(
              task, [&] { return abandoned(connection.socket.get()); },
              [&](const TransferProgress& done) {
                Reply so_far;
                so_far.transfer = done;
                tell.tell(so_far);
              }),
          reply.stored, reply);
      break;
    }
    default:
      if (const auto found = handlers_.simple.find(request.operation);
          found != handlers_.simple.end()) {
        return found->second(request);
      }
      reply.error = Error(ErrorCode::kInvalid, "the daemon does not know this kind of request");
      break;
  }
  return reply;
}

}  // namespace varve::control
