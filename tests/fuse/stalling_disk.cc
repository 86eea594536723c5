// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, makes a disk that takes no writes for a while: what writes to files
// below $STALL_BELOW waits as long as the file $STALL_WHILE exists. Reading goes on.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool is_below(int fd) {
  const char* below = std::getenv("STALL_BELOW");
  if (below == nullptr) return false;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length < 0) return false;
  path[length] = '\0';
  return std::strncmp(path, below, std::strlen(below)) == 0;
}

void wait_if_stalled(int fd) {
  const char* flag = std::getenv("STALL_WHILE");
  if (flag == nullptr) return;
  while (::access(flag, F_OK) == 0 && is_below(fd)) ::usleep(20'000);
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// Under the names that libraries call them by, whatever size off_t has here.
ssize_t stalling_pwrite(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite");
ssize_t stalling_pwrite64(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite64");
ssize_t stalling_writev(int fd, const iovec* parts, int count) __asm__("writev");
int stalling_fdatasync(int fd) __asm__("fdatasync");
int stalling_fsync(int fd) __asm__("fsync");

ssize_t stalling_pwrite(int fd, const void* data, size_t bytes, off64_t at) {
  wait_if_stalled(fd);
  static const auto call = real<decltype(&stalling_pwrite)>("pwrite");
  return call(fd, data, bytes, at);
}

ssize_t stalling_pwrite64(int fd, const void* data, size_t bytes, off64_t at) {
  wait_if_stalled(fd);
  static const auto call = real<decltype(&stalling_pwrite64)>("pwrite64");
  return call(fd, data, bytes, at);
}

ssize_t stalling_writev(int fd, const iovec* parts, int count) {
  wait_if_stalled(fd);
  static const auto call = real<decltype(&stalling_writev)>("writev");
  return call(fd, parts, count);
}

int stalling_fdatasync(int fd) {
  wait_if_stalled(fd);
  static const auto call = real<decltype(&stalling_fdatasync)>("fdatasync");
  return call(fd);
}

int stalling_fsync(int fd) {
  wait_if_stalled(fd);
  static const auto call = real<decltype(&stalling_fsync)>("fsync");
  return call(fd);
}
