// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "base/unique_fd.h"
#include "cli/progress.h"

namespace varve::cli {

/// Takes SIGINT, SIGTERM, SIGHUP and SIGUSR1, unless they are ignored, from the whole process while
/// it lives, without a signal handler: a thread waits for them. Make it before any other thread
/// starts, so that they inherit the mask.
class SignalWatch {
 public:
  struct Actions {
    std::function<void()> stop;    ///< SIGINT, SIGTERM, SIGHUP. At the second one the process ends.
    std::function<void()> report;  ///< SIGUSR1.
  };

  explicit SignalWatch(Actions actions);
  /// Ends the process at the first signal: for what may end anywhere.
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
