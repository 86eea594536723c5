// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, gives it a disk like some FUSE and network file systems:
//   DISK_REFUSES_DIRECT=1   open accepts O_DIRECT, and reads and writes answer EINVAL
//   DISK_HAS_NO_STATFS=1    statvfs reports no blocks at all
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool refuses(int fd) {
  if (std::getenv("DISK_REFUSES_DIRECT") == nullptr) return false;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_DIRECT) == 0) return false;
  errno = EINVAL;
  return true;
}

void forget(struct statvfs* values) {
  if (std::getenv("DISK_HAS_NO_STATFS") == nullptr) return;
  *values = {};
  values->f_bsize = 512;
}

}  // namespace

// The functions that libraries call, for both sizes of off_t.
ssize_t odd_pread(int fd, void* data, size_t bytes, off64_t at) __asm__("pread");
ssize_t odd_pread64(int fd, void* data, size_t bytes, off64_t at) __asm__("pread64");
ssize_t odd_pwrite(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite");
ssize_t odd_pwrite64(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite64");
int odd_statvfs(const char* path, struct statvfs* values) __asm__("statvfs");
int odd_statvfs64(const char* path, struct statvfs* values) __asm__("statvfs64");
int odd_fstatvfs(int fd, struct statvfs* values) __asm__("fstatvfs");
int odd_fstatvfs64(int fd, struct statvfs* values) __asm__("fstatvfs64");

ssize_t odd_pread(int fd, void* data, size_t bytes, off64_t at) {
  static const auto call = real<decltype(&odd_pread)>("pread64");
  return refuses(fd) ? -1 : call(fd, data, bytes, at);
}
ssize_t odd_pread64(int fd, void* data, size_t bytes, off64_t at) {
  return odd_pread(fd, data, bytes, at);
}

ssize_t odd_pwrite(int fd, const void* data, size_t bytes, off64_t at) {
  static const auto call = real<decltype(&odd_pwrite)>("pwrite64");
  return refuses(fd) ? -1 : call(fd, data, bytes, at);
}
ssize_t odd_pwrite64(int fd, const void* data, size_t bytes, off64_t at) {
  return odd_pwrite(fd, data, bytes, at);
}

int odd_statvfs(const char* path, struct statvfs* values) {
  static const auto call = real<decltype(&odd_statvfs)>("statvfs64");
  const int result = call(path, values);
  if (result == 0) forget(values);
  return result;
}
int odd_statvfs64(const char* path, struct statvfs* values) { return odd_statvfs(path, values); }

int odd_fstatvfs(int fd, struct statvfs* values) {
  static const auto call = real<decltype(&odd_fstatvfs)>("fstatvfs64");
  const int result = call(fd, values);
  if (result == 0) forget(values);
  return result;
}
int odd_fstatvfs64(int fd, struct statvfs* values) { return odd_fstatvfs(fd, values); }
