// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include "control/socket.h"

namespace varve::control {

namespace {
Error lacks(std::string_view what) {
  return {ErrorCode::kInvalid, "the daemon's answer lacks the " + std::string(what)};
}

Request request_for(Operation operation) {
  Request request;
  request.operation = operation;
  return request;
}
}  // namespace

Result<Client> Client::connect(const std::string& repository) {
  VARVE_TRY_ASSIGN(base::UniqueFd socket, connect_to(repository));
  return Client(std::move(socket));
}

Result<Reply> Client::ask(const Request& request) {
  VARVE_TRY(send_line(socket_.get(), encode(request)));
  return receive(-1);
}

Result<Reply> Client::receive(int stop) {
  auto line = receive_line(socket_.get(), stop);
  if (!line && line.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kIo, "the daemon ended before it answered; see the system log");
  }
  if (!line) return std::move(line).error();
  VARVE_TRY_ASSIGN(Reply reply, decode_reply(*line));
  if (reply.error) return *std::move(reply.error);
  return reply;
}

Result<void> Client::ping() {
  VARVE_TRY(ask({}));
  return {};
}

Result<SealReply> Client::seal(const SealRequest& request) {
  Request asked = request_for(Operation::kSeal);
  asked.seal = request;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.version) return lacks("version");
  return SealReply{*std::move(reply.version), std::move(reply.next)};
}

Result<VersionInfo> Client::open(const OpenRequest& request) {
  Request asked = request_for(Operation::kOpen);
  asked.open = request;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.version) return lacks("version");
  return *std::move(reply.version);
}

Result<VersionInfo> Client::clone(const OpenRequest& request) {
  Request asked = request_for(Operation::kClone);
  asked.open = request;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.version) return lacks("version");
  return *std::move(reply.version);
}

Result<RepositoryStats> Client::stats() {
  VARVE_TRY_ASSIGN(Reply reply, ask({.operation = Operation::kStats, .seal = {}, .open = {}}));
  if (!reply.stats) return lacks("sizes");
  return *reply.stats;
}

Result<DeletionForecast> Client::remove(const DeleteRequest& request) {
  Request asked = request_for(Operation::kDelete);
  asked.removal = request;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.forecast) return lacks("sizes");
  return *std::move(reply.forecast);
}

Result<void> Client::lock(const LockRequest& request) {
  Request asked = request_for(Operation::kLock);
  asked.lock = request;
  VARVE_TRY(ask(asked));
  return {};
}

Result<ArrangeReport> Client::arrange(const ArrangeRequest& request, int stop,
                                      const std::function<void(const ArrangeProgress&)>& progress) {
  Request asked = request_for(Operation::kArrange);
  asked.arrange = request;
  VARVE_TRY(send_line(socket_.get(), encode(asked)));
  for (;;) {
    VARVE_TRY_ASSIGN(const Reply reply, receive(stop));
    if (reply.arranged) return *reply.arranged;
    if (!reply.progress) return lacks("report");
    if (progress) progress(*reply.progress);
  }
}

Result<ArrangeSettings> Client::arrange_settings(const std::optional<ArrangeSettings>& settings) {
  Request asked = request_for(Operation::kArrangeSettings);
  asked.settings = settings;
  VARVE_TRY_ASSIGN(const Reply reply, ask(asked));
  if (!reply.settings) return lacks("settings");
  return *reply.settings;
}

}  // namespace varve::control
