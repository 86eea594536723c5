// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include <poll.h>

namespace varve::control {

namespace {

/// Longest delay between a signal to the writer of a stream and the same signal to the command.
constexpr int kStopPauseMs = 50;

Request request_for(Operation operation) {
  Request request;
  request.operation = operation;
  return request;
}
}  // namespace

Result<Client> Client::connect(const std::string& repository, const ClientPatience& patience) {
  VARVE_TRY_ASSIGN(auto connection, DaemonConnection::open(repository, patience));
  return Client(std::move(connection));
}

Error Client::lacks(std::string_view what) {
  return {ErrorCode::kInvalid, "the daemon's answer lacks the " + std::string(what)};
}

Result<Reply> Client::exchange(const Request& request, const char* newer) {
  return *newer == '\0' ? connection_.ask(request) : connection_.ask_new(request, newer);
}

Result<SealReply> Client::seal(const SealRequest& request, int stop) {
  Request asked = request_for(Operation::kSeal);
  asked.seal = request;
  VARVE_TRY(connection_.send(asked));
  VARVE_TRY_ASSIGN(Reply reply, connection_.receive(stop));
  if (!reply.version) return lacks("version");
  return SealReply{*std::move(reply.version), std::move(reply.next), std::move(reply.warning)};
}

Result<StoreTaskReply> Client::store(const StoreTask& task, int stop,
                                     const std::function<void(const TransferProgress&)>& progress) {
  Request asked = request_for(task.stream ? Operation::kStoreStream : Operation::kStore);
  asked.store = task;
  VARVE_TRY(connection_.send(asked, task.stream ? task.stream->input->get() : -1));
  bool began = !task.stream;
  for (;;) {
    VARVE_TRY_ASSIGN(Reply reply, connection_.receive_any(stop));
    // A daemon of an older Varve answers at once.
    const bool is_unknown = !began && reply.error && reply.error->code() == ErrorCode::kInvalid &&
                            reply.error->message().find("not understood") != std::string::npos;
    if (is_unknown) return connection_.older("way to store archives and streams");
    if (reply.error) return *std::move(reply.error);
    began = true;
    if (reply.stored) return *std::move(reply.stored);
    if (reply.all_read) {
      // A signal to the writer of the stream may have come to the command, too.
      pollfd stopped = {.fd = stop, .events = POLLIN, .revents = 0};
      if (::poll(&stopped, 1, kStopPauseMs) > 0)
        return Error(ErrorCode::kInterrupted, "interrupted");
      if (task.stream->check_end) {
        auto ended = task.stream->check_end();
        if (!ended) return connection_.refuse_end(std::move(ended).error(), stop);
      }
      VARVE_TRY(connection_.send_more(request_for(Operation::kGoOn)));
      continue;
    }
    if (!reply.transfer) return lacks("report");
    if (progress) progress(*reply.transfer);
  }
}

Result<ArrangeReport> Client::arrange(const ArrangeRequest& request, int stop,
                                      const std::function<void(const ArrangeProgress&)>& progress) {
  Request asked = request_for(Operation::kArrange);
  asked.arrange = request;
  VARVE_TRY(connection_.send(asked));
  for (;;) {
    VARVE_TRY_ASSIGN(const Reply reply, connection_.receive(stop));
    if (reply.arranged) return *reply.arranged;
    if (!reply.progress) return lacks("report");
    if (progress) progress(*reply.progress);
  }
}

}  // namespace varve::control
