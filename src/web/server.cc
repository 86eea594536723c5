// SPDX-License-Identifier: Apache-2.0
#include "web/server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"

namespace varve::web {
namespace {

constexpr int kBacklog = 64;

Result<base::UniqueFd> listen_on(const sockaddr* address, socklen_t bytes) {
  base::UniqueFd socket(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return base::io_error("cannot make a socket", errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->sa_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (::bind(socket.get(), address, bytes) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return Error(ErrorCode::kBusy, "the port is taken; choose another one with --port");
    }
    return base::io_error("cannot listen on the loopback interface", errno);
  }
  return socket;
}

Result<base::UniqueFd> listen_ipv4(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return listen_on(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Result<base::UniqueFd> listen_ipv6(std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return listen_on(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Result<std::uint16_t> port_of(const base::UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t bytes = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
    return base::io_error("cannot read the port", errno);
  }
  return ntohs(address.sin_port);
}

/// Closes a connection after the browser got the whole answer: with unread data in the socket, the
/// kernel would cut the answer off.
void finish(int socket) {
  ::shutdown(socket, SHUT_WR);
  std::array<char, 4096> buffer;
  for (int i = 0; i < 16; ++i) {
    struct pollfd wait = {socket, POLLIN, 0};
    if (::poll(&wait, 1, 200) <= 0) return;
    if (::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT) <= 0) return;
  }
}

const char* words_for(unsigned status) {
  switch (status) {
    case 405:
      return "This server only shows; it answers GET and HEAD.";
    case 408:
      return "The request took too long.";
    case 413:
      return "A request must not have a body.";
    case 431:
      return "The request is too large.";
    case 505:
      return "Use HTTP/1.1.";
    default:
      return "The request is malformed.";
  }
}

/// The answer to a refused request. Status 0: the request is admitted.
struct Refusal {
  unsigned status = 0;
  std::string text = {};
  Headers headers = {};
};

Refusal refusal_of(const ParsedRequest& parsed, const Gate& gate) {
  if (!parsed.request) {
    Refusal refusal{parsed.status, words_for(parsed.status)};
    if (parsed.status == 405) refusal.headers.emplace_back("Allow", "GET, HEAD");
    return refusal;
  }
  switch (gate.judge(*parsed.request)) {
    case Gate::Verdict::kForeignHost:
      return {421, "Open the address that `varve web` printed."};
    case Gate::Verdict::kRefused:
      return {401, "Open the address that `varve web` printed: it has a token."};
    case Gate::Verdict::kExchange:
      return {303, "", {{"Location", gate.home()}, {"Set-Cookie", gate.cookie()}}};
    case Gate::Verdict::kAdmitted:
      break;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(std::uint16_t port) {
  VARVE_TRY_ASSIGN(auto secrets, make_secrets());
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::io_error("cannot make an event", errno);
  VARVE_TRY_ASSIGN(auto ipv4, listen_ipv4(port));
  VARVE_TRY_ASSIGN(const std::uint16_t chosen, port_of(ipv4));
  std::vector<base::UniqueFd> listeners;
  listeners.push_back(std::move(ipv4));
  // The machine may lack IPv6, or another process may use the port: the printed address is an IPv4
  // address.
  if (auto ipv6 = listen_ipv6(chosen)) listeners.push_back(std::move(*ipv6));
  return std::unique_ptr<Server>(
      new Server(std::move(listeners), std::move(wake), chosen, std::move(secrets)));
}

std::string Server::address() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/?token=" + gate_.token();
}

void Server::accept_connections(Reception& reception) const {
  for (const auto& listener : listeners_) {
    base::UniqueFd accepted(
        ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted.valid()) {
      reception.add(std::move(accepted));
    } else if (errno == EMFILE || errno == ENFILE) {
      // Without a free descriptor, the connection stays in the queue: do not spin.
      ::poll(nullptr, 0, 100);
    }
  }
}

void Server::run(const Handler& handler) {
  base::ThreadPool workers(kServerThreads, "web");
  Reception reception;
  while (true) {
    std::vector<struct pollfd> waits{{wake_.get(), POLLIN, 0}};
    for (const auto& listener : listeners_) waits.push_back({listener.get(), POLLIN, 0});
    reception.add_waits(waits);
    if (::poll(waits.data(), waits.size(), reception.wait_ms()) < 0 && errno != EINTR) break;
    if ((waits.front().revents & POLLIN) != 0) break;
    accept_connections(reception);
    for (Received& received : reception.receive()) {
      const Refusal refusal = refusal_of(received.parsed, gate_);
      if (refusal.status == 0 && admit(received, workers, handler)) continue;
      // The answer fits into the buffer of a new connection, so sending does not wait.
      Exchange exchange(received.socket.get(),
                        received.parsed.request && received.parsed.request->is_head);
      if (refusal.status == 0) {
        (void)exchange.send_text(503, "Too many requests wait for an answer; try again later.");
      } else {
        (void)exchange.send_text(refusal.status, refusal.text, refusal.headers);
      }
      reception.drain(std::move(received.socket));
    }
  }
  // Connections not yet accepted are refused, too.
  for (const auto& listener : listeners_) ::shutdown(listener.get(), SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const int socket : connections_) ::shutdown(socket, SHUT_RDWR);
  // The pool's destructor waits for the threads, and the threads find closed connections. The
  // destructor runs after the release of the lock, because the lock is younger.
}

bool Server::admit(Received& received, base::ThreadPool& workers, const Handler& handler) {
  {
    const std::lock_guard lock(mutex_);
    if (connections_.size() >= kServerThreads + kWaitingMax) return false;
    connections_.insert(received.socket.get());
  }
  const int socket = received.socket.release();
  workers.run([this, socket, request = gate_.inside(std::move(*received.parsed.request)),
               &handler] { serve(socket, request, handler); });
  return true;
}

void Server::stop() {
  const std::uint64_t one = 1;
  // The first write to an eventfd cannot fail.
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Server::serve(int socket, const Request& request, const Handler& handler) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) ::shutdown(socket, SHUT_RDWR);
  }
  Exchange exchange(socket, request.is_head);
  try {
    handler(request, exchange);
  } catch (const std::exception& error) {
    base::log(base::LogLevel::kError, error.what());
  }
  if (!exchange.has_begun()) (void)exchange.send_text(500, "Nothing answered.");
  finish(socket);
  const std::lock_guard lock(mutex_);
  connections_.erase(socket);
  ::close(socket);
}

}  // namespace varve::web
