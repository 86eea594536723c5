// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "base/unique_fd.h"
#include "cli/progress.h"

namespace varve::cli {

/// Handles SIGINT, SIGTERM, SIGHUP and SIGUSR1 of the process, except ignored signals. Blocks the
/// signals during the SignalWatch's lifetime; a thread waits for the signals. Create the
/// SignalWatch before any other thread, so that all threads inherit the mask.
class SignalWatch {
 public:
  struct Actions {
    /// Called at SIGINT, SIGTERM or SIGHUP. A second signal ends the process; see StopSignals.
    std::function<void()> stop;
    std::function<void()> report;  ///< Called at SIGUSR1.
  };

  explicit SignalWatch(Actions actions);
  /// Ends the process at the first signal, for work that may end at any point.
  explicit SignalWatch(Progress& progress);
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

 private:
  void run();

  const Actions actions_;
  sigset_t old_mask_{};
  base::UniqueFd signals_;
  base::UniqueFd quit_;
  std::thread thread_;
};

}  // namespace varve::cli
