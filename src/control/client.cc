// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include "control/socket.h"

namespace varve::control {

namespace {
Error lacks_version() { return {ErrorCode::kInvalid, "the daemon's answer lacks the version"}; }
}  // namespace

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

Result<SealReply> Client::seal(const SealRequest& request) {
  VARVE_TRY_ASSIGN(Reply reply, ask({.operation = Operation::kSeal, .seal = request, .open = {}}));
  if (!reply.version) return lacks_version();
  return SealReply{*std::move(reply.version), std::move(reply.next)};
}

Result<VersionInfo> Client::open(const OpenRequest& request) {
  VARVE_TRY_ASSIGN(Reply reply, ask({.operation = Operation::kOpen, .seal = {}, .open = request}));
  if (!reply.version) return lacks_version();
  return *std::move(reply.version);
}

Result<VersionInfo> Client::clone(const OpenRequest& request) {
  VARVE_TRY_ASSIGN(Reply reply, ask({.operation = Operation::kClone, .seal = {}, .open = request}));
  if (!reply.version) return lacks_version();
  return *std::move(reply.version);
}

Result<RepositoryStats> Client::stats() {
  VARVE_TRY_ASSIGN(Reply reply, ask({.operation = Operation::kStats, .seal = {}, .open = {}}));
  if (!reply.stats) return Error(ErrorCode::kInvalid, "the daemon's answer lacks the sizes");
  return *reply.stats;
}

}  // namespace varve::control
