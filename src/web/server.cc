// SPDX-License-Identifier: Apache-2.0
#include "web/server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "base/thread_pool.h"

namespace varve::web {
namespace {

constexpr std::chrono::seconds kRequestTime{10};
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

/// Receives a request. Returns no request and status 0 if the browser closed the connection.
ParsedRequest receive(int socket) {
  constexpr unsigned kTimeout = 408;
  const auto end = std::chrono::steady_clock::now() + kRequestTime;
  std::string bytes;
  std::array<char, 4096> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {.request = std::nullopt, .status = kTimeout};
    struct pollfd wait = {socket, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {.request = std::nullopt, .status = ready == 0 ? kTimeout : 0};
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return {};
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
    ParsedRequest parsed = parse_request(bytes);
    if (parsed.request || parsed.status != 0) return parsed;
  }
}

/// Closes a connection so that the browser gets all of the answer: data that nothing has read would
/// make the kernel cut the answer off.
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

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(std::uint16_t port) {
  VARVE_TRY_ASSIGN(std::string token, make_token());
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::io_error("cannot make an event", errno);
  VARVE_TRY_ASSIGN(auto ipv4, listen_ipv4(port));
  VARVE_TRY_ASSIGN(const std::uint16_t chosen, port_of(ipv4));
  std::vector<base::UniqueFd> listeners;
  listeners.push_back(std::move(ipv4));
  // A machine may be without IPv6, or another process may have its port: the address that is
  // printed is that of IPv4.
  if (auto ipv6 = listen_ipv6(chosen)) listeners.push_back(std::move(*ipv6));
  return std::unique_ptr<Server>(
      new Server(std::move(listeners), std::move(wake), chosen, std::move(token)));
}

std::string Server::address() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/?token=" + gate_.token();
}

void Server::run(const Handler& handler) {
  base::ThreadPool workers(kServerThreads, "web");
  std::vector<struct pollfd> waits{{wake_.get(), POLLIN, 0}};
  for (const auto& listener : listeners_) waits.push_back({listener.get(), POLLIN, 0});
  while (true) {
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    if ((waits.front().revents & POLLIN) != 0) break;
    for (const auto& listener : listeners_) {
      base::UniqueFd accepted(
          ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!accepted.valid()) {
        // Without a free descriptor, the connection stays in the queue: do not spin.
        if (errno == EMFILE || errno == ENFILE) ::poll(nullptr, 0, 100);
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (connections_.size() >= kServerThreads + kWaitingMax) continue;  // Closes it.
      const int socket = accepted.release();
      connections_.insert(socket);
      workers.run([this, socket, &handler] { serve(socket, handler); });
    }
  }
  // Connections that nothing has accepted are refused, too.
  for (const auto& listener : listeners_) ::shutdown(listener.get(), SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const int socket : connections_) ::shutdown(socket, SHUT_RDWR);
  // The pool's destructor waits for the threads, which find their connections closed. It runs after
  // the lock is released, because the lock is younger.
}

void Server::stop() {
  const std::uint64_t one = 1;
  // The first write to an eventfd cannot fail.
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Server::serve(int socket, const Handler& handler) {
  const ParsedRequest parsed = receive(socket);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) ::shutdown(socket, SHUT_RDWR);
  }
  if (parsed.request || parsed.status != 0) {
    Exchange exchange(socket, parsed.request && parsed.request->is_head);
    if (parsed.request) {
      answer(*parsed.request, exchange, handler);
    } else {
      Headers headers;
      if (parsed.status == 405) headers.emplace_back("Allow", "GET, HEAD");
      (void)exchange.send_text(parsed.status, words_for(parsed.status), headers);
    }
    finish(socket);
  }
  const std::lock_guard lock(mutex_);
  connections_.erase(socket);
  ::close(socket);
}

void Server::answer(const Request& request, Exchange& exchange, const Handler& handler) {
  switch (gate_.judge(request)) {
    case Gate::Verdict::kForeignHost:
      (void)exchange.send_text(421, "Open the address that `varve web` printed.");
      return;
    case Gate::Verdict::kNoToken:
      (void)exchange.send_text(401, "Open the address that `varve web` printed: it has a token.");
      return;
    case Gate::Verdict::kExchange:
      (void)exchange.send(303, "text/plain; charset=utf-8", "",
                          {{"Location", "/"}, {"Set-Cookie", gate_.cookie()}});
      return;
    case Gate::Verdict::kAdmitted:
      break;
  }
  try {
    handler(request, exchange);
  } catch (const std::exception& error) {
    base::log(base::LogLevel::kError, error.what());
  }
  if (!exchange.has_begun()) (void)exchange.send_text(500, "Nothing answered.");
}

}  // namespace varve::web
