// SPDX-License-Identifier: Apache-2.0
// Arranges at the end of commands that leave work for the arranger, if no daemon does it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signal_watch.h"
#include "cli/store_waiting.h"
#include "control/repository_control.h"
#include "control/stop_request.h"

namespace varve::cli {

/// Adds --no-arrange, which sets `off`.
void add_no_arrange_flag(Command& command, bool& off);

/// Returns the setting arrange-rate in bytes per second; 0 if there is no limit or no such setting.
[[nodiscard]] std::uint64_t stored_rate(control::RepositoryControl& control);

/// Arranges the series with these names, one after the other, until no work is left. Does nothing
/// if the repository arranges by itself. Flushes stdout first.
///
/// Never makes the command fail, because the command's own work is done. Prints a note if a stop, a
/// full disk or damage ends arranging early. A later command or `varve arrange` continues the work.
void arrange_owed(control::RepositoryControl& control, const std::vector<std::string>& all,
                  const control::StopRequest& stop, Progress& progress, const Context& context);

/// Arranges at the end of a command that does not watch for signals itself. Until run() is called,
/// SIGINT and SIGTERM end the process. After that, they stop arranging after its present step, and
/// the wait for an object store that follows. Create it before opening the repository, which starts
/// threads, and end it after closing the repository.
class OwedArranging {
 public:
  /// With `wanted` false, run() does nothing, and signals keep their effect.
  OwedArranging(bool wanted, const Context& context);
  /// Returns how the closing of the repository waits for its object store: `waits`, which the
  /// signals end that this object handles. Lifetime: this object outlives them.
  [[nodiscard]] StoreWaits waits(StoreWaits waits = {}) const;
  /// Calls arrange_owed().
  void run(control::RepositoryControl& control, const std::vector<std::string>& all);

 private:
  const Context& context_;
  Progress progress_;
  control::StopRequest stop_;
  std::atomic<bool> begun_ = false;
  std::unique_ptr<SignalWatch> signals_;  // Last: its thread uses the others.
};

}  // namespace varve::cli
