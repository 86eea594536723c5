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
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "control/client.h"
#include "control/mounted_path.h"
#include "control/patience.h"

extern char** environ;

namespace varve::control {
namespace {

using Clock = std::chrono::steady_clock;

/// Time to wait while the mount is busy. The kernel drops the last reference to a file some time
/// after the last close(2). A program that inspects each new mount may also hold it briefly.
constexpr std::chrono::milliseconds kBusyPatience{1'500};
constexpr std::chrono::milliseconds kBusyPause{50};
/// Time before the user is told about the wait for the daemon, and between two checks of the
/// reason.
constexpr std::chrono::milliseconds kLongWait{3'000};
constexpr std::chrono::milliseconds kLookAgain{1'000};
/// Bytes read of fusermount3's messages.
constexpr std::size_t kTextMax = 1024;

Error busy(const std::string& mount_point) {
  return {ErrorCode::kBusy,
          fmt::format("{} is in use: leave the directory and close its files (fuser -vm {} lists "
                      "the processes), then try again",
                      mount_point, mount_point)};
}

/// Reads the start of a child's output, until the child closes the pipe.
std::string read_text(int pipe) {
  std::string text;
  char part[512];
  for (ssize_t got = 0; (got = ::read(pipe, part, sizeof part)) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0 && text.size() < kTextMax) text.append(part, static_cast<std::size_t>(got));
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Runs fusermount3, which can unmount the caller's own mounts.
Result<void> run_fusermount(const std::string& mount_point, bool lazy) {
  std::vector<const char*> arguments{"fusermount3", "-u"};
  if (lazy) arguments.push_back("-z");
  arguments.insert(arguments.end(), {"--", mount_point.c_str(), nullptr});
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", errno);
  const base::UniqueFd messages(ends[0]);
  base::UniqueFd writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr,
                                   const_cast<char* const*>(arguments.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (error != 0) {
    return Error(
        ErrorCode::kIo,
        fmt::format("cannot run fusermount3 ({}); install the package fuse3, or unmount as "
                    "root",
                    std::strerror(error)));
  }
  const std::string text = read_text(messages.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  // fusermount3 reports the reason only as text.
  if (text.ends_with(std::strerror(EBUSY))) return busy(mount_point);
  return Error(ErrorCode::kIo,
               fmt::format("{} is not unmounted: {}", mount_point,
                           text.empty() ? "fusermount3 ended without a message" : text));
}

Result<void> detach_once(const std::string& mount_point, bool lazy) {
  if (::umount2(mount_point.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
  if (errno == EBUSY) return busy(mount_point);
  if (errno == EPERM) return run_fusermount(mount_point, lazy);
  return base::system_error(mount_point, errno);
}

/// Unmounts. Waits up to kBusyPatience for the last users to leave.
Result<void> detach(const std::string& mount_point, bool lazy) {
  const Clock::time_point deadline = Clock::now() + kBusyPatience;
  for (;;) {
    auto detached = detach_once(mount_point, lazy);
    if (detached || detached.error().code() != ErrorCode::kBusy || Clock::now() >= deadline) {
      return detached;
    }
    std::this_thread::sleep_for(kBusyPause);
  }
}

/// Returns an unset descriptor if the process has already ended.
Result<base::UniqueFd> open_process(std::int64_t process) {
  if (process <= 0) return base::UniqueFd();
  base::UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
  if (!fd.valid() && errno != ESRCH) {
    return base::system_error(fmt::format("process {}", process), errno);
  }
  return fd;
}

/// Waits while the daemon writes, without a limit. Gives up on a stopped daemon.
Result<void> wait_for_end(const base::UniqueFd& fd, const MountedThere& there,
                          const UnmountChoices& choices) {
  constexpr int kLook_ms = 250;
  if (!fd.valid()) return {};
  const auto process = static_cast<pid_t>(there.process);
  pollfd wait = {.fd = fd.get(), .events = POLLIN, .revents = 0};
  const Clock::time_point start = Clock::now();
  Clock::time_point seen_running = start;
  Clock::time_point look_at = start + kLongWait;
  while (::poll(&wait, 1, kLook_ms) <= 0) {
    const Clock::time_point now = Clock::now();
    if (!choices.waits_for_store && there.is_confirmed) {
      // The first signal may arrive while the daemon still serves, and then only ends the serving.
      ::syscall(SYS_pidfd_send_signal, fd.get(), SIGTERM, nullptr, 0);
    }
    if (now >= look_at && choices.takes_long) {
      choices.takes_long({.repository = there.repository,
                          .process = there.process,
                          .holder = find_mount_holder(there.mount, there.process)});
      look_at = Clock::now() + kLookAgain;
    }
    if (!is_stopped(process)) seen_running = now;
    if (now - seen_running > kStoppedMax) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("unmounted, but the daemon (process {}) is stopped and has not "
                               "written everything: continue it with `kill -CONT {}`",
                               process, process));
    }
  }
  return {};
}

/// Returns the only mount point of the repository `path`.
Result<std::string> mount_point_of(const std::string& path) {
  VARVE_TRY_ASSIGN(const auto mounts, find_mounts_of(path));
  if (mounts.empty()) {
    return Error(ErrorCode::kInvalid, fmt::format("the repository {} is not mounted", path));
  }
  if (mounts.size() > 1) {
    std::string points;
    for (const MountEntry& mount : mounts) points += " " + mount.mount_point;
    return Error(ErrorCode::kInvalid,
                 fmt::format("the repository {} is mounted more than once; name one of these mount "
                             "points:{}",
                             path, points));
  }
  return mounts.front().mount_point;
}

/// Tells the user about a long wait before umount(2), unless the thread is stopped early.
std::jthread tell_later(const MountedThere& there, const UnmountChoices& choices) try {
  if (!choices.takes_long) return {};
  return std::jthread([&](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    if (ended.wait_for(lock, stop, kLongWait, [&] { return stop.stop_requested(); })) return;
    choices.takes_long(
        {.repository = there.repository, .process = there.process, .is_unmounted = false});
  });
} catch (const std::system_error&) {
  return {};  // No thread: nothing is told.
}

/// Asks the daemon to make open versions durable before umount(2): the daemon cannot refuse
/// umount(2), and no command sees the daemon's last error.
Result<void> make_durable(const MountedThere& there, const UnmountChoices& choices) {
  if (there.read_only) return {};
  const auto telling = tell_later(there, choices);
  auto client = Client::connect(there.repository);
  if (!client) {
    const ErrorCode code = client.error().code();
    if (code == ErrorCode::kNotFound || code == ErrorCode::kNoRepository) return {};
    return std::move(client).error().with_context(
        "not unmounted, because the daemon did not confirm that open versions are durable; use "
        "--force to unmount without that");
  }
  // A read-only mount beside the mount of a writing daemon.
  if (client->identity().mount_device != there.mount.device) return {};
  auto synced = client->ask<Operation::kSync>();
  // An older daemon does not know the request.
  if (synced || synced.error().code() == ErrorCode::kInvalid) return {};
  return std::move(synced).error().with_context(
      "not unmounted, because open versions would lose data; free some space, or use --force");
}

}  // namespace

Result<UnmountOutcome> unmount(const std::string& path, const UnmountChoices& choices) {
  auto found = find_mounted_on(path);
  if (!found && found.error().code() == ErrorCode::kNotFound) {
    if (!is_repository(path)) {
      if (errno == EACCES) return base::system_error(path, EACCES);
      return Error(ErrorCode::kInvalid, found.error().message());
    }
    VARVE_TRY_ASSIGN(const std::string point, mount_point_of(path));
    found = find_mounted_on(point);
  }
  if (!found) return std::move(found).error();
  if (::geteuid() != 0 && found->mount.user && *found->mount.user != ::geteuid()) {
    return Error(ErrorCode::kNotPermitted,
                 fmt::format("permission denied: user {} mounted {}, and only that user and root "
                             "can unmount it",
                             *found->mount.user, found->mount.mount_point));
  }
  UnmountOutcome outcome{.mount_point = found->mount.mount_point, .daemon_was_dead = found->dead};
  if (found->dead) {
    VARVE_TRY(detach(outcome.mount_point, true));
    return outcome;
  }
  if (!found->read_only) outcome.repository = found->repository;
  VARVE_TRY_ASSIGN(const base::UniqueFd process, open_process(found->process));
  if (choices.mode == UnmountMode::kSafe) VARVE_TRY(make_durable(*found, choices));
  VARVE_TRY(detach(outcome.mount_point, false));
  VARVE_TRY(wait_for_end(process, *found, choices));
  return outcome;
}

}  // namespace varve::control
