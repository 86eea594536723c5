// SPDX-License-Identifier: Apache-2.0
#include "control/command_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/system_error.h"
#include "base/unique_fd.h"

namespace varve::control {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLookEvery{20};
// A command that is ended has so long for that.
constexpr int kLooksAtEnd = 50;

/// A child process. Its destructor ends it, and waits for that.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGTERM);
    for (int looks = 0; looks < kLooksAtEnd && !has_ended(); ++looks) {
      std::this_thread::sleep_for(kLookEvery);
    }
    if (!has_ended()) ::kill(pid_, SIGKILL);
    static_cast<void>(wait());
  }
  /// Returns whether the child has ended.
  bool has_ended() {
    if (pid_ == 0) return true;
    const auto got = ::waitpid(pid_, &status_, WNOHANG);
    // A process that ignores SIGCHLD has no child to wait for.
    if (got == pid_ || (got < 0 && errno != EINTR)) pid_ = 0;
    return pid_ == 0;
  }
  /// Waits for the end. Returns the exit code, or 128 and the signal that ended the child.
  int wait() {
    while (pid_ != 0 && ::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) continue;
    pid_ = 0;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  pid_t pid_;
  int status_ = 0;
};

Error too_long(const std::string& name, std::size_t bytes) {
  return {ErrorCode::kInvalid, fmt::format("{}: a key has less than {} bytes", name, bytes)};
}

/// The time that a command may take.
class Limit {
 public:
  Limit(std::string name, std::optional<std::chrono::milliseconds> limit)
      : name_(std::move(name)), limit_(limit), begun_(Clock::now()) {}

  /// Errors: kUnavailable once the time is over.
  [[nodiscard]] Result<void> check() const {
    if (!limit_ || Clock::now() - begun_ < *limit_) return {};
    return Error(ErrorCode::kUnavailable,
                 fmt::format("{} did not end within {} s", name_,
                             std::chrono::duration<double>(*limit_).count()));
  }

 private:
  const std::string name_;
  const std::optional<std::chrono::milliseconds> limit_;
  const Clock::time_point begun_;
};

/// Reads what the child writes, until it closes the pipe or ends. A process that the child left in
/// the background may keep the pipe open for ever.
Result<std::size_t> read_while_runs(int fd, Child& child, const std::string& name,
                                    const Limit& limit, std::span<std::byte> out) {
  std::size_t have = 0;
  for (bool ended = false; have < out.size();) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, ended ? 0 : static_cast<int>(kLookEvery.count()));
    if (ready < 0 && errno != EINTR) return base::system_error(name, errno);
    if (ready <= 0) {
      if (ended) return have;
      // All that the child wrote before its end is in the pipe now.
      ended = child.has_ended();
      if (!ended) VARVE_TRY(limit.check());
      continue;
    }
    const ssize_t got = ::read(fd, out.data() + have, out.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error(name, errno);
    if (got == 0) return have;
    have += static_cast<std::size_t>(got);
  }
  return too_long(name, out.size());
}

}  // namespace

Result<Secret> read_to_end(int fd, const std::string& name) {
  return Secret::fill_with(Secret::kBytesMax, [&](std::span<std::byte> out) -> Result<std::size_t> {
    std::size_t have = 0;
    while (have < out.size()) {
      const ssize_t got = ::read(fd, out.data() + have, out.size() - have);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::system_error(name, errno);
      if (got == 0) return have;
      have += static_cast<std::size_t>(got);
    }
    return too_long(name, out.size());
  });
}

Result<Secret> output_of_command(const std::string& command, const std::string& name,
                                 std::optional<std::chrono::milliseconds> limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", errno);
  const base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  // Signals may be blocked here; Ctrl-C is to end the command.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string shell = "/bin/sh";
  std::string option = "-c";
  std::string text = command;
  const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  const int failed =
      ::posix_spawn(&pid, shell.c_str(), &actions, &attributes, words.data(), ::environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return base::system_error("cannot run " + name, failed);
  write_end.reset();
  Child child(pid);
  const Limit time(name, limit);
  auto secret = Secret::fill_with(Secret::kBytesMax, [&](std::span<std::byte> out) {
    return read_while_runs(read_end.get(), child, name, time, out);
  });
  if (!secret) return secret;  // A command that prints more than a key blocks on the pipe.
  while (!child.has_ended() && limit) {
    VARVE_TRY(time.check());
    std::this_thread::sleep_for(kLookEvery);
  }
  const int code = child.wait();
  if (code != 0) {
    return Error(ErrorCode::kIo, fmt::format("{} failed with exit code {}", name, code));
  }
  return secret;
}

}  // namespace varve::control
