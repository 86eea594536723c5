// SPDX-License-Identifier: Apache-2.0
#include "control/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/system_error.h"
#include "base/thread_pool.h"

namespace varve::control {
namespace {

/// Time for which the loop does not accept connections after accept(2) failed.
constexpr std::chrono::milliseconds kAcceptPause{200};
constexpr std::chrono::seconds kScanPause{10};

bool readable_or_closed(int fd, short events, std::chrono::milliseconds patience = {}) {
  pollfd wait = {.fd = fd, .events = events, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) > 0;
}

void signal_event(const base::UniqueFd& event) {
  const std::uint64_t one = 1;
  // The write fails only if the event is already readable.
  (void)!::write(event.get(), &one, sizeof one);
}

base::UniqueFd new_reserve() { return base::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

/// Sends an error without waiting for the client. The caller then closes the connection.
void refuse(int socket, ErrorCode code, std::string message) {
  Reply reply;
  reply.error = Error(code, std::move(message));
  (void)send_line_now(socket, encode(reply));
}

Reply failed(ErrorCode code, std::string message) {
  Reply reply;
  reply.error = Error(code, std::move(message));
  return reply;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const std::string& repository, Handlers handlers,
                                              const ServerLimits& limits) {
  VARVE_TRY_ASSIGN(Listener listener, Listener::open(repository));
  std::unique_ptr<Server> server(new Server(std::move(handlers), limits, std::move(listener)));
  VARVE_TRY(server->run());
  return server;
}

Server::Server(Handlers handlers, const ServerLimits& limits, Listener listener)
    : handlers_(std::move(handlers)),
      limits_(limits),
      listener_(std::move(listener)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      nudge_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reserve_(new_reserve()) {}

Result<void> Server::run() {
  const int flags = ::fcntl(listener_.get(), F_GETFL);
  if (!stop_.valid() || !nudge_.valid() || flags < 0 ||
      ::fcntl(listener_.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::system_error("cannot start the control server", errno);
  }
  try {
    loop_ = std::thread([this] { loop(); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::kIo,
                 fmt::format("cannot start a thread for the control server ({}); raise the limit "
                             "of processes (ulimit -u, TasksMax=)",
                             error.what()));
  }
  return {};
}

Server::~Server() {
  signal_event(stop_);
  if (loop_.joinable()) loop_.join();
  for (Connection& connection : connections_) {
    if (connection.worker.joinable()) connection.worker.join();
  }
}

void Server::loop() {
  base::name_this_thread("varve-control");
  while (!readable_or_closed(stop_.get(), POLLIN)) {
    try {
      turn();
    } catch (const std::exception& stray) {
      base::log(base::LogLevel::kError, fmt::format("control server: {}", stray.what()));
      (void)readable_or_closed(stop_.get(), POLLIN, kAcceptPause);
    }
  }
}

/// Waits for the next event and handles it.
void Server::turn() {
  Clock::time_point now = Clock::now();
  if (now >= next_scan_) {
    next_scan_ = now + kScanPause;
    if (handlers_.check_surroundings) handlers_.check_surroundings();
  }
  const bool accepting = now >= accept_again_;
  std::vector<pollfd> waits{
      {.fd = stop_.get(), .events = POLLIN, .revents = 0},
      {.fd = nudge_.get(), .events = POLLIN, .revents = 0},
      {.fd = accepting ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
  std::vector<Connection*> idle;
  for (Connection& connection : connections_) {
    if (connection.worker.joinable()) continue;
    waits.push_back({.fd = connection.socket.get(), .events = POLLIN, .revents = 0});
    idle.push_back(&connection);
  }
  if (::poll(waits.data(), waits.size(), wait_time(now)) < 0 && errno != EINTR) {
    // poll(2) is out of memory. The pause keeps the loop from spinning.
    (void)readable_or_closed(stop_.get(), POLLIN, kAcceptPause);
    return;
  }
  if (waits[0].revents != 0) return;
  if (waits[1].revents != 0) collect_answered();
  for (std::size_t i = 0; i < idle.size(); ++i) {
    if (waits[i + 3].revents != 0) receive(*idle[i]);
  }
  now = Clock::now();
  for (Connection* connection : idle) {
    if (!connection->worker.joinable() && now >= connection->deadline) {
      connection->state = State::kBroken;
    }
  }
  send_heartbeats(now);
  connections_.remove_if([](const Connection& connection) {
    return !connection.worker.joinable() && connection.state == State::kBroken;
  });
  if (waits[2].revents != 0) accept_clients();
}

/// Returns the milliseconds until the next timed action.
int Server::wait_time(Clock::time_point now) const {
  Clock::time_point due = next_scan_;
  if (accept_again_ > now) due = std::min(due, accept_again_);
  for (const Connection& connection : connections_) {
    due = std::min(due,
                   connection.worker.joinable() ? connection.next_heartbeat : connection.deadline);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - now);
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

void Server::accept_clients() {
  if (!reserve_.valid()) reserve_ = new_reserve();
  // At most the length of the listener's queue, so that existing connections get their turn too.
  for (int i = 0; i < 64; ++i) {
    base::UniqueFd socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      admit(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    if (errno == EMFILE || errno == ENFILE) refuse_for_descriptors();
    accept_again_ = Clock::now() + kAcceptPause;
    return;
  }
}

void Server::admit(base::UniqueFd socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return;
  if (peer.uid != 0 && peer.uid != ::geteuid()) {
    base::log(base::LogLevel::kWarning,
              fmt::format("control socket: refused process {} of user {}", peer.pid, peer.uid));
    refuse(socket.get(), ErrorCode::kNotPermitted,
           fmt::format("the daemon answers user {} and root, not user {}", ::geteuid(), peer.uid));
    return;
  }
  if (connections_.size() >= limits_.connections_max) {
    refuse(socket.get(), ErrorCode::kBusy,
           fmt::format("the daemon serves {} commands already, too many to serve another; try "
                       "again when some of them have ended",
                       connections_.size()));
    return;
  }
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  connection.deadline = Clock::now() + limits_.first_request;
}

/// Accepts and refuses waiting clients, one client at a time, with the reserve descriptor. A
/// refused client learns the reason; otherwise the client would wait in the queue.
void Server::refuse_for_descriptors() {
  for (int i = 0; i < 64; ++i) {
    reserve_.reset();
    const base::UniqueFd socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) break;
    refuse(socket.get(), ErrorCode::kBusy,
           "the daemon has too many files open to serve another command; raise its limit of open "
           "files (ulimit -n, LimitNOFILE=), or try again");
  }
  reserve_ = new_reserve();
}

void Server::collect_answered() {
  std::uint64_t count = 0;
  (void)!::read(nudge_.get(), &count, sizeof count);
  for (Connection& connection : connections_) {
    if (!connection.worker.joinable()) continue;
    {
      // A worker with the lock is sending, and will nudge the loop again.
      const std::unique_lock lock(connection.sending, std::try_to_lock);
      if (!lock.owns_lock() || connection.state == State::kWorking) continue;
    }
    connection.worker.join();
    if (connection.state == State::kBroken) continue;
    connection.state = State::kIdle;
    connection.deadline = Clock::now() + limits_.idle;
    serve_received(connection);
  }
}

void Server::receive(Connection& connection) {
  char buffer[16384];
  const auto got = receive_with(connection.socket.get(), buffer, connection.passed);
  if (got && !*got) return;
  if (!got || **got == 0) {
    connection.state = State::kBroken;
    return;
  }
  connection.received.append(buffer, **got);
  serve_received(connection);
}

/// Serves each complete request in the buffer.
void Server::serve_received(Connection& connection) {
  // A running worker has sole use of `state`.
  while (!connection.worker.joinable() && connection.state == State::kIdle) {
    const std::size_t end = connection.received.find('\n');
    if (end == std::string::npos) break;
    const std::string line = connection.received.substr(0, end);
    connection.received.erase(0, end + 1);
    serve(connection, line);
  }
  if (!connection.worker.joinable() && connection.received.size() > kLineBytesMax) {
    refuse(connection.socket.get(), ErrorCode::kTooLarge, "the request to the daemon is too long");
    connection.state = State::kBroken;
  }
}

/// Answers simple requests at once; starts a worker for all others.
void Server::serve(Connection& connection, const std::string& line) {
  connection.deadline = Clock::now() + limits_.idle;
  // A request on a closed connection must not run.
  if (readable_or_closed(connection.socket.get(), POLLRDHUP)) {
    connection.state = State::kBroken;
    return;
  }
  auto request = decode_request(line);
  Reply reply;
  if (!request) {
    reply.error = request.error();
  } else if (request->operation == Operation::kHello) {
    reply = hello();
  } else if (request->operation == Operation::kStoreStream && !connection.passed.valid()) {
    reply = failed(ErrorCode::kInvalid, "no stream came with the request");
  } else {
    if (request->store.stream) {
      request->store.stream->input = std::make_shared<base::UniqueFd>(std::move(connection.passed));
    }
    start_worker(connection, std::move(*request));
    return;
  }
  if (!send_line_now(connection.socket.get(), encode(reply))) connection.state = State::kBroken;
}

void Server::start_worker(Connection& connection, Request request) {
  connection.state = State::kWorking;
  connection.next_heartbeat = Clock::now() + limits_.heartbeat;
  try {
    connection.worker =
        std::thread([this, &connection, asked = std::move(request)] { work(connection, asked); });
  } catch (const std::exception& error) {
    const Reply reply = failed(
        ErrorCode::kBusy,
        fmt::format(
            "the daemon cannot start a thread for this command ({}); raise its limit of processes "
            "(ulimit -u, TasksMax=), or try again",
            error.what()));
    const bool sent = send_line_now(connection.socket.get(), encode(reply)).has_value();
    connection.state = sent ? State::kIdle : State::kBroken;
  }
}

/// Runs on the worker's thread.
void Server::work(Connection& connection, const Request& request) {
  base::name_this_thread("varve-request");
  State state = State::kBroken;
  std::string text;
  try {
    text = encode(answer(request, connection));
  } catch (const std::exception& stray) {
    base::log(base::LogLevel::kError, fmt::format("unexpected exception: {}", stray.what()));
    text = R"({"ok":false,"code":"io","message":"unexpected error in the daemon; see its log"})";
  }
  {
    const std::lock_guard lock(connection.sending);
    try {
      if (send_line(connection.socket.get(), text, limits_.write, stop_.get())) {
        state = State::kAnswered;
      }
    } catch (const std::exception& stray) {
      base::log(base::LogLevel::kError, fmt::format("unexpected exception: {}", stray.what()));
    }
    connection.state = state;
  }
  signal_event(nudge_);
}

void Server::send_heartbeats(Clock::time_point now) {
  for (Connection& connection : connections_) {
    if (!connection.worker.joinable() || now < connection.next_heartbeat) continue;
    connection.next_heartbeat = now + limits_.heartbeat;
    // A worker with the lock is sending, and the data is a sign of life too.
    const std::unique_lock lock(connection.sending, std::try_to_lock);
    if (!lock.owns_lock() || connection.state != State::kWorking) continue;
    Reply reply;
    reply.working = true;
    const auto sent = send_line_now(connection.socket.get(), encode(reply));
    // A partly sent line breaks the protocol. The worker finds the connection shut down.
    if (!sent && sent.error().code() != ErrorCode::kBusy) {
      ::shutdown(connection.socket.get(), SHUT_RDWR);
    }
  }
}

Reply Server::hello() const {
  Reply reply;
  Identity& identity = reply.identity.emplace();
  identity.protocol = kProtocol;
  identity.process = ::getpid();
  identity.device = listener_.repository().status.st_dev;
  identity.inode = listener_.repository().status.st_ino;
  identity.mount_namespace = own_mount_namespace();
  if (handlers_.identify) handlers_.identify(identity);
  return reply;
}

bool Server::abandoned(int socket) const {
  return readable_or_closed(stop_.get(), POLLIN) || readable_or_closed(socket, POLLRDHUP);
}

}  // namespace varve::control
