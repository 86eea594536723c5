// SPDX-License-Identifier: Apache-2.0
#include "control/socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/system_error.h"

namespace varve::control {
namespace {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

constexpr int kBacklog = 64;

struct Address {
  sockaddr_un value{};
  socklen_t bytes = 0;
};

/// Returns the address of a file in a folder. A socket address holds 107 bytes of path, and
/// repositories may be deeper, so the path goes through an open descriptor of the folder.
Address address_in(int folder, std::string_view name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, name);
  path.copy(address.value.sun_path, sizeof address.value.sun_path - 1);
  address.bytes = sizeof address.value;
  return address;
}

Address abstract_address(std::string_view name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::size_t bytes =
      name.copy(address.value.sun_path + 1, sizeof address.value.sun_path - 1);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return address;
}

base::UniqueFd new_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

Result<void> listen_on(int socket, const Address& address) {
  // On Linux the file gets the mode of the unbound socket, so no other user can connect first.
  if (::fchmod(socket, 0600) != 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address.value), address.bytes) != 0 ||
      ::listen(socket, kBacklog) != 0) {
    return base::io_error("control socket", errno);
  }
  return {};
}

/// Returns the milliseconds until `deadline` for poll(2), -1 for no deadline.
int poll_time(const Deadline& deadline) {
  if (!deadline) return -1;
  const auto now = std::chrono::steady_clock::now();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - now);
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 3'600'000));
}

Deadline deadline_after(std::chrono::milliseconds patience) {
  if (patience.count() < 0) return std::nullopt;
  return std::chrono::steady_clock::now() + patience;
}

/// Returns true once `socket` is ready, false after `deadline`; kInterrupted once `wake` is
/// readable.
Result<bool> wait_for(int socket, short events, const Deadline& deadline, int wake) {
  for (;;) {
    pollfd waits[2] = {{.fd = socket, .events = events, .revents = 0},
                       {.fd = wake, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(waits, 2, poll_time(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return base::io_error("control socket", errno);
    if (waits[1].revents != 0) return Error(ErrorCode::kInterrupted, "interrupted");
    return ready > 0;
  }
}

/// Connects to an address.
/// Errors: kNotFound if no process listens at `address`.
Result<Connected> connect_at(const Address& address, std::chrono::milliseconds patience) {
  Connected connected;
  connected.socket = new_socket();
  if (!connected.socket.valid()) return base::io_error("socket", errno);
  // connect(2) blocks while the queue of a daemon that does not accept is full.
  const timeval limit{.tv_sec = std::max<time_t>(1, patience.count() / 1000), .tv_usec = 0};
  ::setsockopt(connected.socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(connected.socket.get(), reinterpret_cast<const sockaddr*>(&address.value),
                address.bytes) != 0) {
    const int error = errno;
    if (error == EAGAIN) {
      return Error(ErrorCode::kBusy, "the daemon accepts no connection; it may be stopped");
    }
    if (error == EACCES || error == EPERM) {
      return Error(ErrorCode::kNotPermitted,
                   "control socket: permission denied, because the daemon runs as another user");
    }
    return Error(ErrorCode::kNotFound, "nothing listens");
  }
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(connected.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return base::io_error("control socket", errno);
  }
  connected.process = peer.pid;
  connected.user = peer.uid;
  return connected;
}

std::vector<uid_t> possible_users(const Folder& repository) {
  std::vector<uid_t> users{::geteuid(), 0, repository.status.st_uid};
  std::ranges::sort(users);
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

std::vector<Address> other_addresses(const Folder& repository, std::vector<base::UniqueFd>& open) {
  std::vector<Address> addresses;
  for (const uid_t user : possible_users(repository)) {
    if (auto folder = open_socket_folder(user, false)) {
      addresses.push_back(address_in(folder->get(), socket_name(repository.status)));
      open.push_back(std::move(*folder));
    }
    for (const std::string& name : abstract_names(repository.status, user)) {
      addresses.push_back(abstract_address(name));
    }
  }
  return addresses;
}

}  // namespace

Result<Listener> Listener::open(const std::string& repository) {
  VARVE_TRY_ASSIGN(Folder folder, open_folder(repository));
  Listener listener(std::move(folder));
  const auto in_repository =
      listener.listen_at(listener.repository_.fd.get(), std::string(kSocketName));
  if (in_repository) {
    listener.place_ = fmt::format("{}/{}", repository, kSocketName);
    return listener;
  }
  // exFAT, CIFS and some FUSE file systems have no sockets, and a full disk has no room for one.
  const std::string name = socket_name(listener.repository_.status);
  auto runtime = open_socket_folder(::geteuid(), true);
  if (runtime && listener.listen_at(runtime->get(), name)) {
    listener.folder_ = std::move(*runtime);
    listener.place_ = fmt::format("{}/{}", socket_folder(::geteuid()), name);
    return listener;
  }
  if (!listener.listen_at_abstract_name()) {
    return Error(in_repository.error())
        .with_context(
            fmt::format("{}: cannot create a control socket there or elsewhere", repository));
  }
  return listener;
}

Result<void> Listener::listen_at(int folder, const std::string& name) {
  socket_ = new_socket();
  if (!socket_.valid()) return base::io_error("socket", errno);
  ::unlinkat(folder, name.c_str(), 0);
  VARVE_TRY(listen_on(socket_.get(), address_in(folder, name)));
  name_ = name;
  return {};
}

Result<void> Listener::listen_at_abstract_name() {
  for (const std::string& name : abstract_names(repository_.status, ::geteuid())) {
    socket_ = new_socket();
    if (!socket_.valid()) return base::io_error("socket", errno);
    if (!listen_on(socket_.get(), abstract_address(name))) continue;
    place_ = "@" + name;
    return {};
  }
  return Error(ErrorCode::kIo, "no abstract socket name is free");
}

Listener::~Listener() {
  if (!socket_.valid() || name_.empty()) return;
  const base::UniqueFd& folder = folder_.valid() ? folder_ : repository_.fd;
  ::unlinkat(folder.get(), name_.c_str(), 0);
}

Result<Connected> connect_to(const std::string& repository, std::chrono::milliseconds patience) {
  VARVE_TRY_ASSIGN(Folder folder, open_folder(repository));
  std::vector<base::UniqueFd> open;
  std::vector<Address> addresses = other_addresses(folder, open);
  struct stat file {};
  if (::fstatat(folder.fd.get(), kSocketName.data(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISSOCK(file.st_mode)) {
    addresses.insert(addresses.begin(), address_in(folder.fd.get(), kSocketName));
  }
  const std::vector<uid_t> believed = possible_users(folder);
  std::optional<Error> refused;
  for (const Address& address : addresses) {
    auto connected = connect_at(address, patience);
    if (connected && std::ranges::find(believed, connected->user) != believed.end()) {
      connected->repository = std::move(folder);
      return connected;
    }
    if (connected) {
      refused = Error(
          ErrorCode::kNotPermitted,
          fmt::format("{}: process {} of user {} answers instead of the daemon; Varve trusts only "
                      "the owner of the repository, root and the caller",
                      repository, connected->process, connected->user));
    } else if (connected.error().code() != ErrorCode::kNotFound && !refused) {
      refused = Error(connected.error()).with_context(repository);
    }
  }
  if (refused) return *std::move(refused);
  return Error(ErrorCode::kNotFound, fmt::format("{} is not mounted", repository));
}

Result<void> send_line(int socket, std::string_view line, std::chrono::milliseconds patience,
                       int wake) {
  const auto deadline = deadline_after(patience);
  std::string text(line);
  text += '\n';
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return base::io_error("control socket", errno);
    VARVE_TRY_ASSIGN(const bool ready, wait_for(socket, POLLOUT, deadline, wake));
    if (!ready)
      return Error(ErrorCode::kUnavailable, "the other end of the control socket does not read");
  }
  return {};
}

Result<void> send_line_with(int socket, std::string_view line, int passed,
                            std::chrono::milliseconds patience) {
  char first = line.empty() ? '\n' : line.front();
  iovec part = {.iov_base = &first, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof passed)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof passed);
  std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  const auto deadline = deadline_after(patience);
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return base::io_error("control socket", errno);
    VARVE_TRY_ASSIGN(const bool ready, wait_for(socket, POLLOUT, deadline, -1));
    if (!ready) {
      return Error(ErrorCode::kUnavailable, "the other end of the control socket does not read");
    }
  }
  return line.empty() ? Result<void>() : send_line(socket, line.substr(1), patience);
}

Result<std::optional<std::size_t>> receive_with(int socket, std::span<char> out,
                                                base::UniqueFd& passed) {
  constexpr std::size_t kPassedMax = 4;  // The kernel closes any further descriptors.
  iovec part = {.iov_base = out.data(), .iov_len = out.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kPassedMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return std::optional<std::size_t>();
  if (got < 0) return base::io_error("control socket", errno);
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
      passed = base::UniqueFd(descriptor);
    }
  }
  return std::optional(static_cast<std::size_t>(got));
}

Result<void> send_line_now(int socket, std::string_view line) {
  std::string text(line);
  text += '\n';
  const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno == EAGAIN) {
    return Error(ErrorCode::kBusy, "the other end of the control socket does not read");
  }
  if (sent != static_cast<ssize_t>(text.size())) {
    return base::io_error("control socket", sent < 0 ? errno : EAGAIN);
  }
  return {};
}

Result<std::string> receive_line(int socket, std::chrono::milliseconds patience, int wake) {
  const auto deadline = deadline_after(patience);
  std::string line;
  for (;;) {
    VARVE_TRY_ASSIGN(const bool ready, wait_for(socket, POLLIN, deadline, wake));
    if (!ready)
      return Error(ErrorCode::kUnavailable, "the other end of the control socket does not answer");
    char buffer[4096];
    // Look at the data first, so that bytes after the newline stay in the socket.
    ssize_t got = ::recv(socket, buffer, sizeof buffer, MSG_PEEK);
    const bool any = got > 0;
    const void* end = any ? std::memchr(buffer, '\n', static_cast<std::size_t>(got)) : nullptr;
    if (end != nullptr) got = static_cast<const char*>(end) - buffer + 1;
    if (any) got = ::recv(socket, buffer, static_cast<std::size_t>(got), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ECONNRESET) return base::io_error("control socket", errno);
    if (got <= 0) return Error(ErrorCode::kNotFound, "the other end closed the control socket");
    line.append(buffer, static_cast<std::size_t>(got));
    if (line.ends_with('\n')) {
      line.pop_back();
      return line;
    }
    if (line.size() > kLineBytesMax)
      return Error(ErrorCode::kTooLarge, "a message on the control socket is too long");
  }
}

Result<bool> wait_to_receive(int socket, std::chrono::milliseconds patience, int wake) {
  return wait_for(socket, POLLIN, deadline_after(patience), wake);
}

}  // namespace varve::control
