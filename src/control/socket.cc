// SPDX-License-Identifier: Apache-2.0
#include "control/socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace varve::control {
namespace {

Error system_error(const std::string& what, int errno_value) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno_value)), errno_value};
}

/// A socket's address holds 107 bytes of path, and repositories may lie deeper; so the path
/// goes through an open descriptor of the folder.
struct Address {
  base::UniqueFd folder;
  sockaddr_un value{};
};

Result<Address> address_in(const std::string& repository) {
  Address address;
  address.folder = base::UniqueFd(::open(repository.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!address.folder.valid()) return system_error(repository, errno);
  address.value.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", address.folder.get(), kSocketName);
  path.copy(address.value.sun_path, sizeof address.value.sun_path - 1);
  return address;
}

base::UniqueFd new_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

}  // namespace

Result<base::UniqueFd> listen_in(const std::string& repository) {
  VARVE_TRY_ASSIGN(const Address address, address_in(repository));
  base::UniqueFd socket = new_socket();
  if (!socket.valid()) return system_error("socket", errno);
  ::unlinkat(address.folder.get(), kSocketName.data(), 0);
  // On Linux the file gets the mode of the unbound socket, so nobody else can be first.
  if (::fchmod(socket.get(), 0600) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.value),
             sizeof address.value) != 0 ||
      ::listen(socket.get(), 16) != 0) {
    return system_error(fmt::format("{}/{}", repository, kSocketName), errno);
  }
  return socket;
}

Result<base::UniqueFd> connect_to(const std::string& repository) {
  VARVE_TRY_ASSIGN(const Address address, address_in(repository));
  base::UniqueFd socket = new_socket();
  if (!socket.valid()) return system_error("socket", errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.value),
                sizeof address.value) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return Error(ErrorCode::kNotFound, fmt::format("{} is not mounted", repository), errno);
    }
    return system_error(fmt::format("{}/{}", repository, kSocketName), errno);
  }
  return socket;
}

void remove_socket(const std::string& repository) {
  ::unlink(fmt::format("{}/{}", repository, kSocketName).c_str());
}

Result<void> send_line(int socket, std::string_view line) {
  std::string text(line);
  text += '\n';
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("control socket", errno);
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::string> receive_line(int socket, int wake) {
  std::string line;
  for (;;) {
    pollfd waits[2] = {{.fd = socket, .events = POLLIN, .revents = 0},
                       {.fd = wake, .events = POLLIN, .revents = 0}};
    if (::poll(waits, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return system_error("control socket", errno);
    }
    if (waits[1].revents != 0) return Error(ErrorCode::kInterrupted, "the daemon is ending");
    char buffer[4096];
    // Looked at first, so that the next line stays in the socket.
    ssize_t got = ::recv(socket, buffer, sizeof buffer, MSG_PEEK);
    const bool any = got > 0;
    const void* end = any ? std::memchr(buffer, '\n', static_cast<std::size_t>(got)) : nullptr;
    if (end != nullptr) got = static_cast<const char*>(end) - buffer + 1;
    if (any) got = ::recv(socket, buffer, static_cast<std::size_t>(got), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("control socket", errno);
    if (got == 0) return Error(ErrorCode::kNotFound, "the other end closed the connection");
    line.append(buffer, static_cast<std::size_t>(got));
    if (line.ends_with('\n')) {
      line.pop_back();
      return line;
    }
    if (line.size() > kLineBytesMax) return Error(ErrorCode::kTooLarge, "control line too long");
  }
}

}  // namespace varve::control
