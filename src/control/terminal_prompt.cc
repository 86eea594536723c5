// SPDX-License-Identifier: Apache-2.0
#include "control/terminal_prompt.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "base/system_error.h"

namespace varve::control {
namespace {

constexpr std::size_t kTypedBytesMax = 1024;

// Signals whose default action ends the process.
constexpr std::array kEndings{SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,   SIGBUS,
                              SIGFPE,  SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM,   SIGTERM,
                              SIGXCPU, SIGXFSZ, SIGPROF, SIGPOLL, SIGSYS,  SIGVTALRM, SIGPWR};

void print(const std::string& text) {
  // A vanished terminal shows as a failed read.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// The prompt in progress, global because a signal handler has no other access.
struct Prompt {
  int fd = -1;
  termios before{};
  termios hidden{};
  const std::string* text = nullptr;
};
Prompt g_prompt;
std::atomic<bool> g_waits{false};       // Guards g_prompt, which does not change while true.
std::atomic<bool> g_asks_again{false};  // Set after a stop: the user types from the beginning.

void on_stop(int signal);

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

// The handlers call only async-signal-safe functions. A signal is blocked while its handler runs,
// and has the default effect when the handler returns.
void on_ending(int signal) {
  show_typed_text();
  set_handler(signal, SIG_DFL);
  ::raise(signal);
}

void on_stop(int signal) {
  show_typed_text();
  set_handler(signal, SIG_DFL);
  ::raise(signal);
}

void on_continue(int /*signal*/) {
  const int error = errno;
  set_handler(SIGTSTP, on_stop);
  if (g_waits.load()) {
    ::tcsetattr(g_prompt.fd, TCSAFLUSH, &g_prompt.hidden);
    print(*g_prompt.text);
    g_asks_again.store(true);
  }
  errno = error;
}

/// Handles signals while a prompt waits, and restores the former handlers. Leaves alone signals
/// ignored or handled by the process.
class PromptSignals {
 public:
  PromptSignals() {
    for (const int signal : kEndings) take(signal, on_ending);
    take(SIGTSTP, on_stop);
    take(SIGCONT, on_continue);
  }
  PromptSignals(const PromptSignals&) = delete;
  PromptSignals& operator=(const PromptSignals&) = delete;
  ~PromptSignals() {
    for (const auto& [signal, former] : former_) ::sigaction(signal, &former, nullptr);
  }

 private:
  void take(int signal, void (*handler)(int)) {
    struct sigaction former {};
    if (::sigaction(signal, nullptr, &former) != 0) return;
    if ((former.sa_flags & SA_SIGINFO) != 0 || former.sa_handler != SIG_DFL) return;
    former_.emplace_back(signal, former);
    set_handler(signal, handler);
  }
  std::vector<std::pair<int, struct sigaction>> former_;
};

/// Turns off the echo, the line editing and the signals of a terminal until destroyed, or until a
/// signal ends or stops the process.
class HiddenInput {
 public:
  HiddenInput(int fd, const std::string& prompt) : fd_(fd) {
    works_ = ::tcgetattr(fd_, &before_) == 0;
    if (!works_) return;
    auto hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | ICANON | ISIG);
    hidden.c_cc[VMIN] = 1;
    hidden.c_cc[VTIME] = 0;
    g_prompt = {fd_, before_, hidden, &prompt};
    g_waits.store(true);
    signals_ = std::make_unique<PromptSignals>();
    works_ = ::tcsetattr(fd_, TCSAFLUSH, &hidden) == 0;
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;
  ~HiddenInput() {
    if (works_) ::tcsetattr(fd_, TCSAFLUSH, &before_);
    g_waits.store(false);
    // on_continue() may have hidden the input in between.
    if (works_) ::tcsetattr(fd_, TCSANOW, &before_);
    signals_.reset();
  }
  [[nodiscard]] bool works() const { return works_; }

 private:
  int fd_;
  termios before_{};
  std::unique_ptr<PromptSignals> signals_;
  bool works_ = false;
};

Result<std::size_t> read_line(int terminal, std::span<std::byte> out) {
  constexpr char kCtrlC = 3;
  constexpr char kCtrlD = 4;
  constexpr char kBackspace = 8;
  constexpr char kCtrlU = 21;
  constexpr char kCtrlZ = 26;
  constexpr char kCtrlBackslash = 28;
  constexpr char kDelete = 127;
  std::size_t have = 0;
  for (;;) {
    char typed = 0;
    const ssize_t got = ::read(terminal, &typed, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error("the terminal", errno);
    if (g_asks_again.exchange(false)) have = 0;
    const bool ends = got == 0 || typed == kCtrlD;
    if (typed == kCtrlC || (ends && have == 0)) {
      return Error(ErrorCode::kInterrupted, "no passphrase was given");
    }
    if (typed == kCtrlBackslash || typed == kCtrlZ) {
      // As the terminal would do. After a stop, on_continue() asks again.
      ::kill(0, typed == kCtrlZ ? SIGTSTP : SIGQUIT);
      continue;
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

void show_typed_text() {
  const int error = errno;
  if (g_waits.load()) ::tcsetattr(g_prompt.fd, TCSANOW, &g_prompt.before);
  errno = error;
}

base::UniqueFd open_terminal() {
  if (::isatty(STDIN_FILENO) == 1) return base::UniqueFd(::dup(STDIN_FILENO));
  struct stat input {};
  const bool has_data =
      ::fstat(STDIN_FILENO, &input) == 0 &&
      (S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode));
  if (!has_data || ::isatty(STDERR_FILENO) == 0) return {};
  base::UniqueFd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC));
  // Reading would stop a process in the background.
  if (terminal.valid() && ::tcgetpgrp(terminal.get()) != ::getpgrp()) return {};
  return terminal;
}

Result<Secret> ask_terminal(const base::UniqueFd& terminal, const std::string& prompt) {
  const HiddenInput hidden(terminal.get(), prompt);
  if (!hidden.works()) return base::system_error("the terminal", errno);
  print(prompt);
  auto secret = Secret::fill_with(
      kTypedBytesMax, [&](std::span<std::byte> out) { return read_line(terminal.get(), out); });
  print("\n");
  return secret;
}

}  // namespace varve::control
