// SPDX-License-Identifier: Apache-2.0
#include "control/unmount.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/unique_fd.h"
#include "control/mount_table.h"

extern char** environ;

namespace varve::control {
namespace {

Error busy(const std::string& mount_point) {
  return {ErrorCode::kBusy,
          fmt::format("{} is in use: leave the directory and close its files (fuser -vm {} shows "
                      "who has them), then try again",
                      mount_point, mount_point),
          EBUSY};
}

/// Runs fusermount3, which may unmount what its caller mounted.
Result<void> run_fusermount(const std::string& mount_point, bool lazy) {
  const char* arguments[] = {"fusermount3",       "-u",   lazy ? "-z" : "-q", "--",
                             mount_point.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr,
                                   const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Error(
        ErrorCode::kIo,
        fmt::format("cannot run fusermount3 ({}); install the package fuse3, or unmount as "
                    "root",
                    std::strerror(error)),
        error);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  // fusermount3 does not tell why it failed but in words; in use is the usual reason.
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return busy(mount_point);
  return {};
}

Result<void> detach(const std::string& mount_point, bool lazy) {
  if (::umount2(mount_point.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
  if (errno == EBUSY) return busy(mount_point);
  if (errno == EPERM) return run_fusermount(mount_point, lazy);
  return Error(ErrorCode::kIo, fmt::format("{}: {}", mount_point, std::strerror(errno)), errno);
}

/// The daemon's process; kStale if the mount has none any more.
Result<base::UniqueFd> open_daemon(const std::string& mount_point) {
  char text[32];
  const ssize_t got = ::getxattr(mount_point.c_str(), "user.varve.pid", text, sizeof text);
  if (got < 0 && (errno == ENOTCONN || errno == ECONNABORTED)) {
    return Error(ErrorCode::kStale, "the daemon is dead", errno);
  }
  if (got < 0) {
    return Error(ErrorCode::kIo, fmt::format("{}: {}", mount_point, std::strerror(errno)), errno);
  }
  pid_t pid = 0;
  const auto parsed = std::from_chars(text, text + got, pid);
  if (parsed.ec != std::errc{} || pid <= 0) {
    return Error(ErrorCode::kInvalid, fmt::format("{} names no process", mount_point));
  }
  base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid() && errno != ESRCH) {
    return Error(ErrorCode::kIo, fmt::format("process {}: {}", pid, std::strerror(errno)), errno);
  }
  return process;
}

void wait_for_end(const base::UniqueFd& process) {
  if (!process.valid()) return;
  pollfd wait = {.fd = process.get(), .events = POLLIN, .revents = 0};
  while (::poll(&wait, 1, -1) < 0 && errno == EINTR) continue;
}

}  // namespace

Result<UnmountOutcome> unmount(const std::string& path) {
  auto found = find_mount(path);
  if (!found) return Error(ErrorCode::kInvalid, found.error().message());
  if (!found->relative.empty()) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{} is not a mount point; {} is", path, found->mount_point));
  }
  UnmountOutcome outcome{.mount_point = found->mount_point, .daemon_was_dead = false};
  const auto process = open_daemon(outcome.mount_point);
  if (!process) {
    if (process.error().code() != ErrorCode::kStale) return process.error();
    VARVE_TRY(detach(outcome.mount_point, true));
    outcome.daemon_was_dead = true;
    return outcome;
  }
  VARVE_TRY(detach(outcome.mount_point, false));
  wait_for_end(*process);
  return outcome;
}

}  // namespace varve::control
