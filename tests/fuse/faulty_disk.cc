// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, gives the files below $DISK_BELOW a faulty disk:
//   DISK_STALLS_WHILE=FILE   writes and syncs wait as long as FILE exists
//   DISK_KILLS_AT=N          the N-th call that changes the disk ends the program instead
//   DISK_KILLS_ONCE=FILE     … counted only from the creation of FILE on
//   DISK_FULL_AT=N          the N-th such call and all later ones that write get ENOSPC
//   DISK_FULL_WHILE=FILE     calls that write, and cuts, get ENOSPC as long as FILE exists
//   DISK_CALLS_IN=FILE       each call appends one byte to FILE
//   DISK_IGNORES_SYNCS=1     a sync returns at once and does nothing
// Reads always work.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool begins(const char* path) {
  const char* below = std::getenv("DISK_BELOW");
  return below != nullptr && std::strncmp(path, below, std::strlen(below)) == 0;
}

bool is_below(int fd) {
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length < 0) return false;
  path[length] = '\0';
  return begins(path);
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool ignores_syncs() { return std::getenv("DISK_IGNORES_SYNCS") != nullptr; }

// Runs before every change, and may end the program. Returns whether the disk is full.
bool count_change() {
  static std::atomic<long> changes{0};
  const char* once = std::getenv("DISK_KILLS_ONCE");
  if (once != nullptr && ::access(once, F_OK) != 0) return false;
  const long now = ++changes;
  if (const char* in = std::getenv("DISK_CALLS_IN")) {
    static const auto open_file = real<int (*)(const char*, int, ...)>("open");
    static const int fd = open_file(in, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    static const auto write_byte = real<ssize_t (*)(int, const void*, size_t)>("write");
    write_byte(fd, ".", 1);
  }
  if (const char* at = std::getenv("DISK_KILLS_AT"); at != nullptr && now == std::atol(at)) {
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }
  if (const char* flag = std::getenv("DISK_FULL_WHILE"); flag && ::access(flag, F_OK) == 0) {
    errno = ENOSPC;
    return true;
  }
  const char* full = std::getenv("DISK_FULL_AT");
  if (full == nullptr || now < std::atol(full)) return false;
  errno = ENOSPC;
  return true;
}

bool before_change(int fd) {
  if (std::getenv("DISK_BELOW") == nullptr || !is_below(fd)) return false;
  if (const char* flag = std::getenv("DISK_STALLS_WHILE")) {
    while (::access(flag, F_OK) == 0) ::usleep(20'000);
  }
  return count_change();
}

bool before_change(const char* path) { return begins(path) && count_change(); }

// Runs before a change of a name in `folder`.
bool before_change_in(int folder) {
  return std::getenv("DISK_BELOW") != nullptr && is_below(folder) && count_change();
}

}  // namespace

// The functions that libraries call, for both sizes of off_t.
int faulty_open(const char* path, int flags, mode_t mode) __asm__("open");
int faulty_open64(const char* path, int flags, mode_t mode) __asm__("open64");
int faulty_openat(int folder, const char* path, int flags, mode_t mode) __asm__("openat");
int faulty_openat64(int folder, const char* path, int flags, mode_t mode) __asm__("openat64");
int faulty_unlinkat(int folder, const char* path, int flags) __asm__("unlinkat");
int faulty_renameat(int from_folder, const char* from, int to_folder,
                    const char* to) __asm__("renameat");
ssize_t faulty_write(int fd, const void* data, size_t bytes) __asm__("write");
ssize_t faulty_pwrite(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite");
ssize_t faulty_pwrite64(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite64");
ssize_t faulty_writev(int fd, const iovec* parts, int count) __asm__("writev");
int faulty_ftruncate(int fd, off64_t bytes) __asm__("ftruncate");
int faulty_ftruncate64(int fd, off64_t bytes) __asm__("ftruncate64");
int faulty_fdatasync(int fd) __asm__("fdatasync");
int faulty_fsync(int fd) __asm__("fsync");
int faulty_unlink(const char* path) __asm__("unlink");
int faulty_rename(const char* from, const char* to) __asm__("rename");

int faulty_open(const char* path, int flags, mode_t mode) {
  static const auto call = real<int (*)(const char*, int, ...)>("open");
  if (ignores_syncs()) flags &= ~(O_SYNC | O_DSYNC);
  if ((flags & O_CREAT) != 0 && ::access(path, F_OK) != 0 && before_change(path)) return -1;
  return call(path, flags, mode);
}
int faulty_open64(const char* path, int flags, mode_t mode) {
  return faulty_open(path, flags | O_LARGEFILE, mode);
}

int faulty_openat(int folder, const char* path, int flags, mode_t mode) {
  static const auto call = real<int (*)(int, const char*, int, ...)>("openat");
  if (ignores_syncs()) flags &= ~(O_SYNC | O_DSYNC);
  if ((flags & O_CREAT) != 0 && ::faccessat(folder, path, F_OK, 0) != 0 &&
      before_change_in(folder)) {
    return -1;
  }
  return call(folder, path, flags, mode);
}
int faulty_openat64(int folder, const char* path, int flags, mode_t mode) {
  return faulty_openat(folder, path, flags | O_LARGEFILE, mode);
}

ssize_t faulty_write(int fd, const void* data, size_t bytes) {
  static const auto call = real<decltype(&faulty_write)>("write");
  if (before_change(fd)) return -1;
  return call(fd, data, bytes);
}

ssize_t faulty_pwrite(int fd, const void* data, size_t bytes, off64_t at) {
  if (before_change(fd)) return -1;
  static const auto call = real<decltype(&faulty_pwrite)>("pwrite");
  return call(fd, data, bytes, at);
}
ssize_t faulty_pwrite64(int fd, const void* data, size_t bytes, off64_t at) {
  return faulty_pwrite(fd, data, bytes, at);
}

ssize_t faulty_writev(int fd, const iovec* parts, int count) {
  if (before_change(fd)) return -1;
  static const auto call = real<decltype(&faulty_writev)>("writev");
  return call(fd, parts, count);
}

// A disk that copies on write needs blocks for a cut.
int faulty_ftruncate(int fd, off64_t bytes) {
  if (before_change(fd) && std::getenv("DISK_FULL_WHILE") != nullptr) return -1;
  static const auto call = real<decltype(&faulty_ftruncate)>("ftruncate");
  return call(fd, bytes);
}
int faulty_ftruncate64(int fd, off64_t bytes) { return faulty_ftruncate(fd, bytes); }

int faulty_fdatasync(int fd) {
  before_change(fd);
  static const auto call = real<decltype(&faulty_fdatasync)>("fdatasync");
  return ignores_syncs() ? 0 : call(fd);
}

int faulty_fsync(int fd) {
  before_change(fd);
  static const auto call = real<decltype(&faulty_fsync)>("fsync");
  return ignores_syncs() ? 0 : call(fd);
}

int faulty_unlink(const char* path) {
  before_change(path);
  static const auto call = real<decltype(&faulty_unlink)>("unlink");
  return call(path);
}

int faulty_rename(const char* from, const char* to) {
  before_change(from);
  static const auto call = real<decltype(&faulty_rename)>("rename");
  return call(from, to);
}

int faulty_unlinkat(int folder, const char* path, int flags) {
  before_change_in(folder);
  static const auto call = real<decltype(&faulty_unlinkat)>("unlinkat");
  return call(folder, path, flags);
}

int faulty_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  before_change_in(from_folder);
  static const auto call = real<decltype(&faulty_renameat)>("renameat");
  return call(from_folder, from, to_folder, to);
}
