// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include "control/socket.h"

namespace varve::control {

Result<Client> Client::connect(const std::string& repository) {
  VARVE_TRY_ASSIGN(base::UniqueFd socket, connect_to(repository));
  return Client(std::move(socket));
}

Result<Reply> Client::ask(const Request& request) {
  VARVE_TRY(send_line(socket_.get(), encode(request)));
  auto line = receive_line(socket_.get(), -1);
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

Result<VersionInfo> Client::seal(const SealRequest& request) {
  VARVE_TRY_ASSIGN(Reply reply, ask({.operation = Operation::kSeal, .seal = request}));
  if (!reply.version) return Error(ErrorCode::kInvalid, "the daemon's answer lacks the version");
  return *std::move(reply.version);
}

Result<RepositoryStats> Client::stats() {
  VARVE_TRY_ASSIGN(Reply reply, ask({.operation = Operation::kStats, .seal = {}}));
  if (!reply.stats) return Error(ErrorCode::kInvalid, "the daemon's answer lacks the sizes");
  return *reply.stats;
}

}  // namespace varve::control
