// SPDX-License-Identifier: Apache-2.0
// Preloaded into the daemon, refuses Unix sockets in a repository, as exFAT, CIFS and some FUSE
// file systems do. With VARVE_ABSTRACT_ONLY in the environment, refuses them elsewhere, too.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

extern "C" int bind(int fd, const sockaddr* address, socklen_t bytes) {
  using Bind = int (*)(int, const sockaddr*, socklen_t);
  static const auto real = reinterpret_cast<Bind>(::dlsym(RTLD_NEXT, "bind"));
  if (address->sa_family == AF_UNIX) {
    const char* path = reinterpret_cast<const sockaddr_un*>(address)->sun_path;
    const bool file = path[0] != 0;
    if (file && (std::strstr(path, "/control.sock") != nullptr ||
                 std::getenv("VARVE_ABSTRACT_ONLY") != nullptr)) {
      errno = EPERM;
      return -1;
    }
  }
  return real(fd, address, bytes);
}
