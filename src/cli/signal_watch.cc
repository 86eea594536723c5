// SPDX-License-Identifier: Apache-2.0
#include "cli/signal_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/command.h"
#include "cli/stop_signals.h"
#include "control/terminal_prompt.h"

namespace varve::cli {

SignalWatch::SignalWatch(Actions actions) : actions_(std::move(actions)) {
  sigset_t mask;
  ::sigemptyset(&mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    // A signal ignored by the caller (nohup, a background job) would arrive after blocking.
    struct sigaction present {};
    const bool ignored =
        ::sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
    if (!ignored) ::sigaddset(&mask, signal);
  }
  signals_ = base::UniqueFd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  quit_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // Without descriptors, the signals keep the default effect and end the process.
  if (!signals_.valid() || !quit_.valid()) return;
  ::pthread_sigmask(SIG_BLOCK, &mask, &old_mask_);
  thread_ = std::thread([this] { run(); });
}

SignalWatch::SignalWatch(Progress& progress)
    : SignalWatch({.stop =
                       [&progress] {
                         control::show_typed_text();
                         progress.clear();
                         std::fputs("varve: interrupted\n", stderr);
                         std::_Exit(kExitInterrupted);
                       },
                   .report = [&progress] { progress.print_line(); }}) {}

SignalWatch::~SignalWatch() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  // The first write to an eventfd cannot fail.
  (void)!::write(quit_.get(), &one, sizeof one);
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void SignalWatch::run() {
  StopSignals stops;
  while (true) {
    struct pollfd waits[] = {{signals_.get(), POLLIN, 0}, {quit_.get(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0) continue;
    struct signalfd_siginfo info {};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGUSR1) {
        actions_.report();
        continue;
      }
      const auto meaning = stops.note(std::chrono::steady_clock::now());
      if (meaning == StopSignals::Meaning::kEnd) {
        control::show_typed_text();
        std::_Exit(kExitInterrupted);
      }
      if (meaning == StopSignals::Meaning::kStop) actions_.stop();
    }
    if ((waits[1].revents & POLLIN) != 0) return;
  }
}

}  // namespace varve::cli
