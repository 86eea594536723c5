// SPDX-License-Identifier: Apache-2.0
#include "fs/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "base/system_error.h"
#include "base/unique_fd.h"

namespace varve::fs {

void notify_ready() {
  const char* const named = std::getenv("NOTIFY_SOCKET");
  if (named == nullptr) return;
  const std::string_view path = named;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // "@" stands for the zero byte of an abstract name.
  const bool is_known = path.starts_with('/') || path.starts_with('@');
  if (!is_known || path.size() >= sizeof address.sun_path) {
    base::log(base::LogLevel::kWarning, "NOTIFY_SOCKET names no socket of a service manager");
    return;
  }
  path.copy(address.sun_path, path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view kReadyMessage = "READY=1";
  if (!socket.valid() ||
      ::sendto(socket.get(), kReadyMessage.data(), kReadyMessage.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), bytes) < 0) {
    base::log(
        base::LogLevel::kWarning,
        base::system_error("the service manager does not hear of the mount", errno).message());
  }
}

}  // namespace varve::fs
