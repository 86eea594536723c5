// SPDX-License-Identifier: Apache-2.0
#include "cli/ssh_program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "cli/command.h"

namespace varve::cli {
namespace {

constexpr std::string_view kScheme = "ssh:";

struct Pipe {
  base::UniqueFd read;
  base::UniqueFd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::io_error("pipe", errno);
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

}  // namespace

Result<std::optional<SshPlace>> parse_ssh_place(std::string_view text) {
  if (!text.starts_with(kScheme)) return std::optional<SshPlace>();
  const std::string whole(text);
  text.remove_prefix(kScheme.size());
  const auto colon = text.find(':');
  SshPlace place;
  place.host = text.substr(0, colon);
  if (colon != std::string_view::npos) place.path = text.substr(colon + 1);
  if (place.host.empty() || place.path.empty()) {
    return usage_error(whole + " is no place on a machine; write ssh:HOST:PATH");
  }
  if (place.host.front() == '-') {
    return usage_error(whole + ": the name of a host does not begin with a dash");
  }
  return std::optional(std::move(place));
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

Result<SshProgram> SshProgram::start(const std::string& program, const std::string& host,
                                     const std::string& command) {
  std::vector<std::string> words;
  std::istringstream split(program);
  for (std::string word; split >> word;) words.push_back(word);
  if (words.empty()) return Error(ErrorCode::kInvalid, "no program is named in place of ssh");
  words.push_back(host);
  words.push_back(command);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  VARVE_TRY_ASSIGN(Pipe to, make_pipe());
  VARVE_TRY_ASSIGN(Pipe from, make_pipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from.write.get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Blocked signals and an ignored SIGPIPE would be inherited by the new process.
  sigset_t none;
  sigset_t defaults;
  ::sigemptyset(&none);
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  SshProgram started;
  const int error = ::posix_spawnp(&started.process_, arguments[0], &actions, &attributes,
                                   arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    started.process_ = -1;
    return base::io_error("cannot start " + words.front(), error);
  }
  started.input_ = std::move(from.read);
  started.output_ = std::move(to.write);
  return started;
}

SshProgram::SshProgram(SshProgram&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)) {}

SshProgram::~SshProgram() { static_cast<void>(wait()); }

Result<void> SshProgram::wait() {
  output_ = base::UniqueFd();
  input_ = base::UniqueFd();
  if (process_ < 0) return {};
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status)) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the command on the other machine ended with status {}; see its "
                             "messages above",
                             WEXITSTATUS(status)));
  }
  return Error(ErrorCode::kUnavailable,
               fmt::format("the connection ended by signal {}", WTERMSIG(status)));
}

}  // namespace varve::cli
