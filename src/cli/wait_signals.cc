// SPDX-License-Identifier: Apache-2.0
#include "cli/wait_signals.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

#include "cli/command.h"

namespace varve::cli {
namespace {

/// Global because a signal handler has no other access.
std::atomic<bool> g_waits{false};

void on_signal_during_wait(int /*signal*/) {
  WaitSignals::tell();
  ::_exit(kExitInterrupted);
}

}  // namespace

WaitSignals::WaitSignals() {
  g_waits = true;
  struct sigaction action {};
  action.sa_handler = on_signal_during_wait;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present {};
    const bool is_default =
        ::sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_DFL;
    if (is_default && ::sigaction(signal, &action, nullptr) == 0) former_[signal] = present;
  }
}

WaitSignals::~WaitSignals() {
  for (const auto& [signal, action] : former_) ::sigaction(signal, &action, nullptr);
  g_waits = false;
}

void WaitSignals::tell() {
  if (!g_waits) return;
  constexpr std::string_view kText =
      "varve: interrupted while another process used the repository; nothing was changed\n";
  // A vanished terminal shows as a failed write.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
}

}  // namespace varve::cli
