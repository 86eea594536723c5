// SPDX-License-Identifier: Apache-2.0
#include "control/terminal_prompt.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_error.h"

namespace varve::control {
namespace {

constexpr std::size_t kLineBytesMax = 1024;

/// Turns off the echo, the editing of lines and the signals of a terminal until it is destroyed.
/// With signals, Ctrl-C would end the process and leave the echo off.
class HiddenInput {
 public:
  explicit HiddenInput(int fd) : fd_(fd) {
    works_ = ::tcgetattr(fd_, &before_) == 0;
    if (!works_) return;
    auto hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | ICANON | ISIG);
    hidden.c_cc[VMIN] = 1;
    hidden.c_cc[VTIME] = 0;
    works_ = ::tcsetattr(fd_, TCSAFLUSH, &hidden) == 0;
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;
  ~HiddenInput() {
    if (works_) ::tcsetattr(fd_, TCSAFLUSH, &before_);
  }
  [[nodiscard]] bool works() const { return works_; }

 private:
  int fd_;
  termios before_{};
  bool works_ = false;
};

void print(const std::string& text) {
  // A terminal that is gone shows as a failed read.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

Result<std::size_t> read_line(int terminal, std::span<std::byte> out) {
  constexpr char kCtrlC = 3;
  constexpr char kCtrlD = 4;
  constexpr char kBackspace = 8;
  constexpr char kCtrlU = 21;
  constexpr char kDelete = 127;
  std::size_t have = 0;
  for (;;) {
    char typed = 0;
    const ssize_t got = ::read(terminal, &typed, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error("the terminal", errno);
    const bool ends = got == 0 || typed == kCtrlD;
    if (typed == kCtrlC || (ends && have == 0)) {
      return Error(ErrorCode::kInterrupted, "no passphrase was given");
    }
    if (ends || typed == '\n' || typed == '\r') return have;
    if (typed == kBackspace || typed == kDelete) {
      // Removes a whole character of UTF-8.
      while (have > 0 && (std::to_integer<unsigned>(out[have - 1]) & 0xC0U) == 0x80U) --have;
      if (have > 0) --have;
    } else if (typed == kCtrlU) {
      have = 0;
    } else if (have == out.size()) {
      return Error(ErrorCode::kInvalid, "the passphrase is too long");
    } else {
      out[have++] = static_cast<std::byte>(typed);
    }
  }
}

}  // namespace

base::UniqueFd open_terminal() {
  if (::isatty(STDIN_FILENO) == 1) return base::UniqueFd(::dup(STDIN_FILENO));
  struct stat input {};
  const bool has_data =
      ::fstat(STDIN_FILENO, &input) == 0 &&
      (S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode));
  if (!has_data || ::isatty(STDERR_FILENO) == 0) return {};
  base::UniqueFd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC));
  // A process in the background would be stopped.
  if (terminal.valid() && ::tcgetpgrp(terminal.get()) != ::getpgrp()) return {};
  return terminal;
}

Result<Secret> ask_terminal(const base::UniqueFd& terminal, const std::string& prompt) {
  const HiddenInput hidden(terminal.get());
  if (!hidden.works()) return base::system_error("the terminal", errno);
  print(prompt);
  auto secret = Secret::fill_with(
      kLineBytesMax, [&](std::span<std::byte> out) { return read_line(terminal.get(), out); });
  print("\n");
  return secret;
}

}  // namespace varve::control
