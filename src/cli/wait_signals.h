// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <map>

namespace varve::cli {

/// Makes SIGINT, SIGTERM and SIGHUP end the process with a message during a wait for the lock of a
/// repository. Leaves alone ignored and handled signals. At most one object exists at a time.
class WaitSignals {
 public:
  WaitSignals();
  WaitSignals(const WaitSignals&) = delete;
  WaitSignals& operator=(const WaitSignals&) = delete;
  ~WaitSignals();

  /// Prints the message if a WaitSignals exists. For code ending the process at a signal.
  /// Async-signal-safe.
  static void tell();

 private:
  std::map<int, struct sigaction> former_;  // Former actions of the signals.
};

}  // namespace varve::cli
