// SPDX-License-Identifier: Apache-2.0
#include "control/command_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "control/child_process.h"

namespace varve::control {
namespace {

constexpr std::chrono::milliseconds kPollEvery{20};

Error too_long(const std::string& name, std::size_t bytes) {
  return {ErrorCode::kInvalid, fmt::format("{}: a key has less than {} bytes", name, bytes)};
}

/// The time limit of a command.
class Limit {
 public:
  Limit(std::string name, std::optional<std::chrono::milliseconds> limit)
      : name_(std::move(name)), limit_(limit), begun_(std::chrono::steady_clock::now()) {}

  /// Errors: kUnavailable after the limit.
  [[nodiscard]] Result<void> check() const {
    if (!limit_ || std::chrono::steady_clock::now() - begun_ < *limit_) return {};
    return Error(ErrorCode::kUnavailable,
                 fmt::format("{} did not end within {} s", name_,
                             std::chrono::duration<double>(*limit_).count()));
  }

 private:
  const std::string name_;
  const std::optional<std::chrono::milliseconds> limit_;
  const std::chrono::steady_clock::time_point begun_;
};

/// Reads the output of the child, until the child closes the pipe or ends. A background process of
/// the child may keep the pipe open forever.
Result<std::size_t> read_while_runs(int fd, ChildProcess& child, const std::string& name,
                                    const Limit& limit, std::span<std::byte> out) {
  std::size_t have = 0;
  for (bool ended = false; have < out.size();) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, ended ? 0 : static_cast<int>(kPollEvery.count()));
    if (ready < 0 && errno != EINTR) return base::system_error(name, errno);
    if (ready <= 0) {
      if (ended) return have;
      // The pipe now has all output of the child.
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
  auto started =
      ChildProcess::start({"/bin/sh", "-c", command}, write_end.get(), ChildInput::kInherited);
  if (!started) return Error(started.error()).with_context(name);
  write_end.reset();
  ChildProcess child = std::move(*started);
  const Limit time(name, limit);
  auto secret = Secret::fill_with(Secret::kBytesMax, [&](std::span<std::byte> out) {
    return read_while_runs(read_end.get(), child, name, time, out);
  });
  if (!secret) return secret;  // A command with more output than a key blocks on the pipe.
  while (!child.has_ended() && limit) {
    VARVE_TRY(time.check());
    std::this_thread::sleep_for(kPollEvery);
  }
  const int code = child.wait();
  if (code != 0) {
    return Error(ErrorCode::kIo, fmt::format("{} failed with exit code {}", name, code));
  }
  return secret;
}

}  // namespace varve::control
