// SPDX-License-Identifier: Apache-2.0
#include "control/command_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/system_error.h"
#include "base/unique_fd.h"

namespace varve::control {
namespace {

/// Waits for a child. Returns its exit code, or 128 and the signal that ended it.
int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
    return Error(ErrorCode::kInvalid,
                 fmt::format("{}: a key has less than {} bytes", name, out.size()));
  });
}

Result<Secret> output_of_command(const std::string& command, const std::string& name) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", errno);
  const base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  std::string shell = "/bin/sh";
  std::string option = "-c";
  std::string text = command;
  const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  pid_t child = 0;
  const int failed =
      ::posix_spawn(&child, shell.c_str(), &actions, nullptr, words.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return base::system_error("cannot run " + name, failed);
  write_end.reset();
  auto secret = read_to_end(read_end.get(), name);
  // A command that prints more than a key blocks on the pipe.
  if (!secret) ::kill(child, SIGTERM);
  const int code = wait_for(child);
  if (!secret) return secret;
  if (code != 0) {
    return Error(ErrorCode::kIo, fmt::format("{} failed with exit code {}", name, code));
  }
  return secret;
}

}  // namespace varve::control
