// SPDX-License-Identifier: Apache-2.0
#include "control/server.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
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

bool readable_or_closed(int fd, short events) {
  pollfd wait = {.fd = fd, .events = events, .revents = 0};
  return ::poll(&wait, 1, 0) > 0;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const std::string& repository, Handlers handlers) {
  VARVE_TRY_ASSIGN(base::UniqueFd listener, listen_in(repository));
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return Error(ErrorCode::kIo, "eventfd", errno);
  return std::unique_ptr<Server>(
      new Server(repository, std::move(handlers), std::move(listener), std::move(wake)));
}

Server::Server(std::string repository, Handlers handlers, base::UniqueFd listener,
               base::UniqueFd wake)
    : repository_(std::move(repository)),
      handlers_(std::move(handlers)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      acceptor_([this] { accept_loop(); }) {}

Server::~Server() {
  const std::uint64_t one = 1;
  // An eventfd takes a first write always.
  if (::write(wake_.get(), &one, sizeof one) < 0) {
    base::log(base::LogLevel::kError, "cannot wake the control server");
  }
  acceptor_.join();
  remove_socket(repository_);
  for (Connection& connection : connections_) connection.thread.join();
}

void Server::accept_loop() {
  base::name_this_thread("varve-control");
  for (;;) {
    pollfd waits[2] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                       {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return;
    if (waits[1].revents != 0) return;
    if ((waits[0].revents & POLLIN) == 0) continue;
    base::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) continue;
    join_finished();
    const std::lock_guard lock(mutex_);
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

void Server::join_finished() {
  const std::lock_guard lock(mutex_);
  connections_.remove_if([](Connection& connection) {
    if (connection.done) connection.thread.join();
    return connection.done;
  });
}

void Server::serve(Connection& connection) {
  for (;;) {
    auto line = receive_line(connection.socket.get(), wake_.get());
    if (!line) break;
    Reply reply;
    try {
      reply = answer(*line, connection.socket.get());
    } catch (const std::exception& stray) {
      base::log(base::LogLevel::kError, fmt::format("unexpected exception: {}", stray.what()));
      reply.error = Error(ErrorCode::kIo, "unexpected error in the daemon; see its log");
    }
    if (!send_line(connection.socket.get(), encode(reply))) break;
  }
  const std::lock_guard lock(mutex_);
  connection.socket.reset();
  connection.done = true;
}

Reply Server::answer(const std::string& line, int socket) {
  Reply reply;
  const auto request = decode_request(line);
  if (!request) {
    reply.error = request.error();
    return reply;
  }
  switch (request->operation) {
    case Operation::kPing:
      break;
    case Operation::kSeal: {
      auto outcome = handlers_.seal(request->seal, [&] { return abandoned(socket); });
      if (outcome) {
        reply.version = std::move(outcome->sealed);
        reply.next = std::move(outcome->next);
      } else {
        reply.error = outcome.error();
      }
      break;
    }
    case Operation::kOpen:
    case Operation::kClone: {
      const bool clone = request->operation == Operation::kClone;
      put(clone ? handlers_.clone(request->open) : handlers_.open(request->open), reply.version,
          reply);
      break;
    }
    case Operation::kStats:
      put(handlers_.stats(), reply.stats, reply);
      break;
    default:
      return answer_upkeep(*request, socket);
  }
  return reply;
}

Reply Server::answer_upkeep(const Request& request, int socket) {
  Reply reply;
  switch (request.operation) {
    case Operation::kDelete:
      put(handlers_.remove(request.removal), reply.forecast, reply);
      break;
    case Operation::kLock: {
      auto locked = handlers_.lock(request.lock);
      if (!locked) reply.error = std::move(locked).error();
      break;
    }
    case Operation::kArrange: {
      auto told_at = std::chrono::steady_clock::now();
      const auto tell = [&](const ArrangeProgress& done) {
        const auto now = std::chrono::steady_clock::now();
        if (now - told_at < kProgressPause) return;
        told_at = now;
        Reply so_far;
        so_far.progress = done;
        // A client that is gone is noticed as `cancelled`.
        (void)send_line(socket, encode(so_far));
      };
      put(handlers_.arrange(
              request.arrange, [&] { return abandoned(socket); }, tell),
          reply.arranged, reply);
      break;
    }
    case Operation::kArrangeSettings:
      put(handlers_.settings(request.settings), reply.settings, reply);
      break;
    default:
      reply.error = Error(ErrorCode::kInvalid, "not a request of this kind");
      break;
  }
  return reply;
}

bool Server::abandoned(int socket) const {
  return readable_or_closed(wake_.get(), POLLIN) || readable_or_closed(socket, POLLRDHUP);
}

}  // namespace varve::control
