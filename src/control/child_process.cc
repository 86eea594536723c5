// SPDX-License-Identifier: Apache-2.0
#include "control/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/system_error.h"

namespace varve::control {
namespace {

constexpr std::chrono::milliseconds kLookEvery{20};
// Number of polls, kLookEvery apart, between SIGTERM and SIGKILL.
constexpr int kLooksAtEnd = 50;

}  // namespace

Result<ChildProcess> ChildProcess::start(std::vector<std::string> words, int output,
                                         ChildInput input) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (input == ChildInput::kEmpty) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  // Blocked signals and an ignored SIGPIPE of this process would be inherited by the child.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t defaults;
  ::sigemptyset(&none);
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  // A process with SIGCHLD ignored gets no exit codes of children.
  ::signal(SIGCHLD, SIG_DFL);
  pid_t pid = 0;
  const int failed =
      ::posix_spawnp(&pid, arguments.front(), &actions, &attributes, arguments.data(), ::environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return base::system_error("cannot run " + words.front(), failed);
  return ChildProcess(pid);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), status_(other.status_) {}

ChildProcess::~ChildProcess() {
  if (has_ended()) return;
  ::kill(pid_, SIGTERM);
  for (int looks = 0; looks < kLooksAtEnd && !has_ended(); ++looks) {
    std::this_thread::sleep_for(kLookEvery);
  }
  if (!has_ended()) ::kill(pid_, SIGKILL);
  static_cast<void>(wait());
}

bool ChildProcess::has_ended() {
  if (pid_ == 0) return true;
  int status = 0;
  const auto got = ::waitpid(pid_, &status, WNOHANG);
  if (got == pid_) status_ = status;
  if (got == pid_ || (got < 0 && errno != EINTR)) pid_ = 0;
  return pid_ == 0;
}

int ChildProcess::wait() {
  int status = 0;
  pid_t got = -1;
  do {
    got = pid_ != 0 ? ::waitpid(pid_, &status, 0) : -1;
  } while (got < 0 && pid_ != 0 && errno == EINTR);
  if (got > 0) status_ = status;
  pid_ = 0;
  if (!status_) return -1;
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
}

}  // namespace varve::control
