// SPDX-License-Identifier: Apache-2.0
#include "control/daemon_connection.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "control/socket.h"

namespace varve::control {

Result<DaemonConnection> DaemonConnection::open(const std::string& repository,
                                                const ClientPatience& patience) {
  DaemonConnection connection(repository, patience);
  VARVE_TRY(connection.connect());
  return connection;
}

Result<void> DaemonConnection::connect() {
  VARVE_TRY_ASSIGN(Connected connected, connect_to(repository_, patience_.silence));
  socket_ = std::move(connected.socket);
  process_ = connected.process;
  user_ = connected.user;
  Request hello;
  hello.operation = Operation::kHello;
  // A daemon that refuses the connection sends the reason and disconnects without reading this
  // request.
  const auto sent = send_line(socket_.get(), encode(hello), patience_.silence);
  if (!sent && sent.error().code() == ErrorCode::kUnavailable) return silent();
  const auto reply = receive(-1);
  if (!reply && reply.error().code() == ErrorCode::kInvalid) {
    // A daemon of protocol 1 does not know the request.
    return daemon_refused(1, process_);
  }
  if (!reply) return reply.error();
  if (!reply->identity) {
    return Error(ErrorCode::kInvalid, "the daemon's answer lacks the identity");
  }
  identity_ = *reply->identity;
  if (identity_.protocol != kProtocol) return daemon_refused(identity_.protocol, process_);
  const struct stat& folder = connected.repository.status;
  if (identity_.device != folder.st_dev || identity_.inode != folder.st_ino) {
    // The socket of another repository, or a link, has replaced the repository's socket.
    return Error(
        ErrorCode::kNotPermitted,
        fmt::format(
            "{}: the daemon that answers there (process {}) has opened another repository, {}",
            repository_, process_, identity_.repository));
  }
  return {};
}

Result<void> DaemonConnection::send(const Request& request, int passed) {
  pollfd closed = {.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&closed, 1, 0) > 0) VARVE_TRY(connect());
  const auto line = encode(request);
  const auto sent = passed < 0 ? send_line(socket_.get(), line, patience_.silence)
                               : send_line_with(socket_.get(), line, passed, patience_.silence);
  if (!sent && sent.error().code() == ErrorCode::kUnavailable) return silent();
  return sent;
}

Result<void> DaemonConnection::send_more(const Request& message) {
  return send_line(socket_.get(), encode(message), patience_.silence);
}

Result<Reply> DaemonConnection::ask(const Request& request) {
  VARVE_TRY(send(request));
  return receive(-1);
}

Result<Reply> DaemonConnection::receive(int stop) {
  VARVE_TRY_ASSIGN(Reply reply, receive_any(stop));
  if (reply.error) return *std::move(reply.error);
  return reply;
}

Result<Reply> DaemonConnection::receive_any(int stop) {
  for (;;) {
    auto line = receive_sign_of_life(stop);
    if (!line && line.error().code() == ErrorCode::kNotFound) {
      return Error(ErrorCode::kIo, "the daemon ended before it answered; see the system log");
    }
    if (!line) return std::move(line).error();
    VARVE_TRY_ASSIGN(Reply reply, decode_reply(*line));
    if (reply.working) continue;
    if (!reply.incomplete.empty()) incomplete_ = reply.incomplete;
    return reply;
  }
}

Result<std::string> DaemonConnection::receive_sign_of_life(int stop) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{250};
  const Clock::time_point begin = Clock::now();
  Clock::time_point seen_running = begin;
  for (;;) {
    VARVE_TRY_ASSIGN(const bool ready, wait_to_receive(socket_.get(), kLook, stop));
    if (ready) break;
    const Clock::time_point now = Clock::now();
    if (!is_stopped(process_)) seen_running = now;
    if (now - begin > patience_.silence || now - seen_running > patience_.stopped) return silent();
  }
  auto line = receive_line(socket_.get(), patience_.silence, stop);
  if (!line && line.error().code() == ErrorCode::kUnavailable) return silent();
  return line;
}

Error DaemonConnection::silent() const {
  return {ErrorCode::kUnavailable,
          fmt::format("{}: {}", repository_, advice_for_silence(process_))};
}

Error DaemonConnection::older(std::string_view lack) const {
  return {ErrorCode::kUnsupported,
          fmt::format("{}: the daemon (process {}) is of an older Varve and has no {}; unmount the "
                      "repository with `varve umount` and mount it again with this version",
                      repository_, process_, lack)};
}

Result<Reply> DaemonConnection::ask_new(const Request& request, const char* what) {
  VARVE_TRY(send(request));
  VARVE_TRY_ASSIGN(Reply reply, receive_any(-1));
  // The operation itself never fails with kInvalid, so the daemon does not know the request.
  if (reply.error && reply.error->code() == ErrorCode::kInvalid) return older(what);
  if (reply.error) return *std::move(reply.error);
  return reply;
}

Error DaemonConnection::refuse_end(Error reason, int stop) {
  ::shutdown(socket_.get(), SHUT_WR);  // In place of the answer.
  if (reason.code() == ErrorCode::kInterrupted) return reason;
  for (auto reply = receive_any(stop); reply && !reply->error; reply = receive_any(stop)) continue;
  return reason;
}

}  // namespace varve::control
