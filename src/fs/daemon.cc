// SPDX-License-Identifier: Apache-2.0
#include "fs/daemon.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/coding.h"
#include "base/log.h"
#include "base/system_error.h"
#include "base/unique_fd.h"

namespace varve::fs {
namespace {

// The child sends the parent a single message. The first byte is the kind of message; after
// kFailed, the error's code and text follow.
constexpr std::uint8_t kReady = 1;
constexpr std::uint8_t kFailed = 2;

void send(int pipe, std::string_view message) {
  while (!message.empty()) {
    const ssize_t sent = ::write(pipe, message.data(), message.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // The parent was killed, so nothing reads the pipe.
    message.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void leave_terminal() {
  const base::UniqueFd null(::open("/dev/null", O_RDWR));
  if (!null.valid()) return;
  std::fflush(stdout);
  std::fflush(stderr);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), fd);
}

[[noreturn]] void run_child(
    base::UniqueFd pipe,
    const std::function<Result<void>(const std::function<void()>& ready)>& service) {
  ::setsid();
  // The daemon must not keep another file system busy.
  if (::chdir("/") != 0) base::log(base::LogLevel::kWarning, "cannot change to /");
  bool is_ready = false;
  const auto ready = [&] {
    is_ready = true;
    base::use_syslog();
    leave_terminal();
    send(pipe.get(), std::string(1, static_cast<char>(kReady)));
    pipe.reset();
  };
  const auto result = service(ready);
  if (!result && is_ready) {
    base::log(base::LogLevel::kError, result.error().message());
  } else if (!result) {
    std::string message;
    base::ByteWriter writer(message);
    writer.u8(kFailed);
    writer.u8(static_cast<std::uint8_t>(result.error().code()));
    writer.text(result.error().message());
    send(pipe.get(), message);
  }
  // Not exit(): exit() would flush the parent's buffers and run the parent's exit handlers.
  ::_exit(result ? 0 : 1);
}

Result<void> wait_for_child(int pipe, pid_t child) {
  std::string message;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    message.append(buffer, static_cast<std::size_t>(got));
  }
  base::ByteReader reader(message);
  const std::uint8_t kind = reader.u8();
  if (reader.ok() && kind == kReady) return {};
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  const std::uint8_t code = reader.u8();
  if (!reader.ok() || kind != kFailed || code > static_cast<std::uint8_t>(ErrorCode::kIncomplete)) {
    return Error(ErrorCode::kIo, "the daemon ended unexpectedly; see the system log");
  }
  return Error(static_cast<ErrorCode>(code), std::string(reader.text(reader.left())));
}

}  // namespace

Result<void> run_as_daemon(
    const std::function<Result<void>(const std::function<void()>& ready)>& service) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", errno);
  base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return base::system_error("cannot start a process", errno);
  if (child == 0) {
    read_end.reset();
    run_child(std::move(write_end), service);
  }
  write_end.reset();
  return wait_for_child(read_end.get(), child);
}

}  // namespace varve::fs
