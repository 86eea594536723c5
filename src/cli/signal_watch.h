// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "base/unique_fd.h"
#include "cli/progress.h"

namespace varve::cli {

/// Handles SIGINT, SIGTERM, SIGHUP and SIGUSR1 of the process, unless they are ignored. Blocks them
/// while this object lives; a thread waits for them. Create it before any other thread, so that all
/// threads inherit the mask.
class SignalWatch {
 public:
  struct Actions {
    /// For SIGINT, SIGTERM and SIGHUP. A second one ends the process; see StopSignals.
    std::function<void()> stop;
    std::function<void()> report;  ///< For SIGUSR1.
  };

  explicit SignalWatch(Actions actions);
  /// Ends the process at the first signal, for work that may end anywhere.
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
