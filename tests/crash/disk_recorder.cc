// SPDX-License-Identifier: Apache-2.0
#include "disk_recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace varve::test {
namespace {

// The state that the functions below share with the recorder. It is global, since those functions
// have the names and signatures of the C library.
struct State {
  std::mutex mutex;
  bool on = false;
  std::string root;             // The recorded folder, with a slash at its end.
  std::vector<DiskCall> calls;  // All recorded calls, failed ones included.
  std::map<ino_t, std::uint32_t> files;
  std::set<int> durable;  // Descriptors whose writes are on disk when they return.
  std::uint32_t next_file = 1;
  std::optional<std::uint64_t> failing;
  int failing_errno = 0;
  bool for_good = false;
  bool failed = false;
  bool syncs = true;
};

State& state() {
  static State the_state;
  return the_state;
}

template <typename Function>
Function next_of(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int fd) {
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path);
  return length < 0 ? std::string() : std::string(path, static_cast<std::size_t>(length));
}

std::string path_at(int directory, const char* path) {
  if (path[0] == '/' || directory == AT_FDCWD) return path;
  return path_of(directory) + "/" + path;
}

// Returns the part of `path` below the root, or nothing if the path is outside of it.
std::optional<std::string> below(const std::string& path) {
  const auto& root = state().root;
  if (path.compare(0, root.size(), root) == 0) return path.substr(root.size());
  if (path.size() + 1 == root.size() && root.compare(0, path.size(), path) == 0) return "";
  return std::nullopt;
}

std::uint32_t file_number(const struct stat& st) {
  auto [at, is_new] = state().files.try_emplace(st.st_ino, state().next_file);
  if (is_new) ++state().next_file;
  return at->second;
}

// Returns whether the test wants the next call to fail, and sets errno if so.
bool fails() {
  auto& s = state();
  const std::uint64_t call = s.calls.size();
  if (!s.failing || call < *s.failing || (call > *s.failing && !s.for_good)) return false;
  s.failed = true;
  errno = s.failing_errno;
  return true;
}

// Records a call. If it did not happen, records it as a call without effect. Preserves errno.
void record(DiskCall call, bool happened) {
  const int error = errno;
  if (!happened) call.kind = CallKind::kNothing;
  state().calls.push_back(std::move(call));
  errno = error;
}

// Returns the record of a call on a descriptor, or nothing if the recorder does not watch its path.
std::optional<DiskCall> change_of(int fd) {
  if (!state().on) return std::nullopt;
  const auto path = below(path_of(fd));
  struct stat st {};
  if (!path || ::fstat(fd, &st) != 0) return std::nullopt;
  DiskCall change;
  change.path = *path;
  if (S_ISREG(st.st_mode)) change.file = file_number(st);
  return change;
}

template <typename Call>
int on_name(CallKind kind, const std::string& path, const std::string& to, const Call& call) {
  auto& s = state();
  const std::lock_guard lock(s.mutex);
  const auto inside = s.on ? below(path) : std::nullopt;
  if (!inside) return call();
  DiskCall change;
  change.kind = kind;
  change.path = *inside;
  change.to = below(to).value_or("");
  const int result = fails() ? -1 : call();
  record(std::move(change), result == 0);
  return result;
}

// Opens `path` by `call`, which takes the flags, and records the call.
template <typename Call>
int on_open(const std::string& path, int flags, const Call& call) {
  auto& s = state();
  const std::lock_guard lock(s.mutex);
  const bool durable = (flags & O_DSYNC) != 0;
  flags &= ~(O_SYNC | O_DSYNC);
  const auto opened = [&](int fd) {
    if (fd >= 0 && durable) s.durable.insert(fd);
    if (fd >= 0 && !durable) s.durable.erase(fd);
    return fd;
  };
  const auto inside = s.on ? below(path) : std::nullopt;
  struct stat st {};
  const bool was_there = inside && ::lstat(path.c_str(), &st) == 0;
  if (!inside || (flags & (was_there ? O_TRUNC : O_CREAT)) == 0) return opened(call(flags));
  DiskCall change;
  change.path = *inside;
  change.kind = was_there ? CallKind::kTruncate : CallKind::kCreate;
  const int fd = fails() ? -1 : opened(call(flags));
  if (fd >= 0 && ::fstat(fd, &st) == 0) {
    if (!was_there) s.files[st.st_ino] = s.next_file++;
    change.file = file_number(st);
  }
  record(std::move(change), fd >= 0);
  return fd;
}

template <typename Call>
ssize_t on_write(int fd, std::span<const iovec> parts, std::optional<off64_t> at,
                 const Call& call) {
  const std::lock_guard lock(state().mutex);
  auto change = change_of(fd);
  if (!change) return call();
  change->kind = CallKind::kWrite;
  change->offset = static_cast<std::uint64_t>(at ? *at : ::lseek(fd, 0, SEEK_CUR));
  change->durable = state().durable.contains(fd) && state().syncs;
  const ssize_t result = fails() ? -1 : call();
  for (const auto& part : parts) {
    const std::size_t left =
        static_cast<std::size_t>(std::max<ssize_t>(0, result)) - change->bytes.size();
    change->bytes.append(static_cast<const char*>(part.iov_base), std::min(left, part.iov_len));
  }
  record(std::move(*change), result > 0);
  return result;
}

template <typename Call>
int on_truncate(int fd, off64_t bytes, const Call& call) {
  const std::lock_guard lock(state().mutex);
  auto change = change_of(fd);
  if (!change) return call();
  change->kind = CallKind::kTruncate;
  change->offset = static_cast<std::uint64_t>(bytes);
  const int result = fails() ? -1 : call();
  record(std::move(*change), result == 0);
  return result;
}

// Records a sync instead of making it. This program never waits for the disk: the record alone says
// which bytes are durable.
int on_sync(int fd) {
  const std::lock_guard lock(state().mutex);
  auto change = change_of(fd);
  if (!change) return 0;
  change->kind = change->file == 0 ? CallKind::kSyncDirectory : CallKind::kSync;
  const bool failed = fails();
  if (failed) {
    // Behave like Linux: drop the bytes that could not be written; the next sync succeeds.
    if (change->file != 0) change->kind = CallKind::kFailedSync;
    record(std::move(*change), change->file != 0);
    return -1;
  }
  record(std::move(*change), state().syncs);
  return 0;
}

}  // namespace

DiskRecorder::DiskRecorder(const std::string& root) {
  auto& s = state();
  const std::lock_guard lock(s.mutex);
  s.on = true;
  s.root = root + "/";
}

DiskRecorder::~DiskRecorder() {
  auto& s = state();
  const std::lock_guard lock(s.mutex);
  s.on = false;
  s.calls.clear();
  s.files.clear();
  s.next_file = 1;
  s.failing.reset();
  s.failed = false;
  s.syncs = true;
}

void DiskRecorder::fail(std::uint64_t call, int errno_value, bool for_good) {
  auto& s = state();
  const std::lock_guard lock(s.mutex);
  s.failing = call;
  s.failing_errno = errno_value;
  s.for_good = for_good;
}

void DiskRecorder::heal() {
  const std::lock_guard lock(state().mutex);
  state().failing.reset();
}

void DiskRecorder::ignore_syncs() {
  const std::lock_guard lock(state().mutex);
  state().syncs = false;
}

std::uint64_t DiskRecorder::calls() const {
  const std::lock_guard lock(state().mutex);
  return state().calls.size();
}

bool DiskRecorder::has_failed() const {
  const std::lock_guard lock(state().mutex);
  return state().failed;
}

std::vector<DiskCall> DiskRecorder::take() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().calls, {});
}

}  // namespace varve::test

// The functions that libraries call, for both sizes of off_t.
using varve::test::CallKind;
using varve::test::next_of;
using varve::test::path_at;

int recorded_open(const char* path, int flags, mode_t mode) __asm__("open");
int recorded_open64(const char* path, int flags, mode_t mode) __asm__("open64");
int recorded_openat(int folder, const char* path, int flags, mode_t mode) __asm__("openat");
int recorded_openat64(int folder, const char* path, int flags, mode_t mode) __asm__("openat64");
int recorded_mkdirat(int folder, const char* path, mode_t mode) __asm__("mkdirat");
int recorded_renameat(int from_folder, const char* from, int to_folder,
                      const char* to) __asm__("renameat");
ssize_t recorded_pwrite(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite");
ssize_t recorded_pwrite64(int fd, const void* data, size_t bytes, off64_t at) __asm__("pwrite64");
ssize_t recorded_write(int fd, const void* data, size_t bytes) __asm__("write");
ssize_t recorded_writev(int fd, const iovec* parts, int count) __asm__("writev");
int recorded_ftruncate(int fd, off64_t bytes) __asm__("ftruncate");
int recorded_ftruncate64(int fd, off64_t bytes) __asm__("ftruncate64");
int recorded_fdatasync(int fd) __asm__("fdatasync");
int recorded_fsync(int fd) __asm__("fsync");
int recorded_mkdir(const char* path, mode_t mode) __asm__("mkdir");
int recorded_unlink(const char* path) __asm__("unlink");
int recorded_rmdir(const char* path) __asm__("rmdir");
int recorded_unlinkat(int directory, const char* path, int flags) __asm__("unlinkat");
int recorded_rename(const char* from, const char* to) __asm__("rename");

int recorded_open(const char* path, int flags, mode_t mode) {
  static const auto call = next_of<int (*)(const char*, int, ...)>("open");
  return varve::test::on_open(path, flags, [&](int with) { return call(path, with, mode); });
}
int recorded_open64(const char* path, int flags, mode_t mode) {
  return recorded_open(path, flags | O_LARGEFILE, mode);
}
int recorded_openat(int folder, const char* path, int flags, mode_t mode) {
  static const auto call = next_of<int (*)(int, const char*, int, ...)>("openat");
  return varve::test::on_open(path_at(folder, path), flags,
                              [&](int with) { return call(folder, path, with, mode); });
}
int recorded_openat64(int folder, const char* path, int flags, mode_t mode) {
  return recorded_openat(folder, path, flags | O_LARGEFILE, mode);
}
ssize_t recorded_pwrite(int fd, const void* data, size_t bytes, off64_t at) {
  static const auto call = next_of<decltype(&recorded_pwrite)>("pwrite");
  const iovec part{const_cast<void*>(data), bytes};
  return varve::test::on_write(fd, {&part, 1}, at, [&] { return call(fd, data, bytes, at); });
}
ssize_t recorded_pwrite64(int fd, const void* data, size_t bytes, off64_t at) {
  return recorded_pwrite(fd, data, bytes, at);
}
ssize_t recorded_write(int fd, const void* data, size_t bytes) {
  static const auto call = next_of<decltype(&recorded_write)>("write");
  const iovec part{const_cast<void*>(data), bytes};
  return varve::test::on_write(fd, {&part, 1}, std::nullopt, [&] { return call(fd, data, bytes); });
}
ssize_t recorded_writev(int fd, const iovec* parts, int count) {
  static const auto call = next_of<decltype(&recorded_writev)>("writev");
  return varve::test::on_write(fd, {parts, static_cast<std::size_t>(count)}, std::nullopt,
                               [&] { return call(fd, parts, count); });
}
int recorded_ftruncate(int fd, off64_t bytes) {
  static const auto call = next_of<decltype(&recorded_ftruncate)>("ftruncate");
  return varve::test::on_truncate(fd, bytes, [&] { return call(fd, bytes); });
}
int recorded_ftruncate64(int fd, off64_t bytes) { return recorded_ftruncate(fd, bytes); }
int recorded_fdatasync(int fd) { return varve::test::on_sync(fd); }
int recorded_fsync(int fd) { return varve::test::on_sync(fd); }
int recorded_mkdir(const char* path, mode_t mode) {
  static const auto call = next_of<decltype(&recorded_mkdir)>("mkdir");
  return varve::test::on_name(CallKind::kMakeDirectory, path, "", [&] { return call(path, mode); });
}
int recorded_unlink(const char* path) {
  static const auto call = next_of<decltype(&recorded_unlink)>("unlink");
  return varve::test::on_name(CallKind::kRemove, path, "", [&] { return call(path); });
}
int recorded_rmdir(const char* path) {
  static const auto call = next_of<decltype(&recorded_rmdir)>("rmdir");
  return varve::test::on_name(CallKind::kRemove, path, "", [&] { return call(path); });
}
int recorded_unlinkat(int directory, const char* path, int flags) {
  static const auto call = next_of<decltype(&recorded_unlinkat)>("unlinkat");
  return varve::test::on_name(CallKind::kRemove, path_at(directory, path), "",
                              [&] { return call(directory, path, flags); });
}
int recorded_rename(const char* from, const char* to) {
  static const auto call = next_of<decltype(&recorded_rename)>("rename");
  return varve::test::on_name(CallKind::kRename, from, to, [&] { return call(from, to); });
}
int recorded_mkdirat(int folder, const char* path, mode_t mode) {
  static const auto call = next_of<decltype(&recorded_mkdirat)>("mkdirat");
  return varve::test::on_name(CallKind::kMakeDirectory, path_at(folder, path), "",
                              [&] { return call(folder, path, mode); });
}
int recorded_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  static const auto call = next_of<decltype(&recorded_renameat)>("renameat");
  return varve::test::on_name(CallKind::kRename, path_at(from_folder, from), path_at(to_folder, to),
                              [&] { return call(from_folder, from, to_folder, to); });
}
