// SPDX-License-Identifier: Apache-2.0
// Arranges at the end of commands that leave work for the arranger, unless a daemon arranges.
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

/// Returns the setting arrange-rate in bytes per second; 0 without a limit or a setting.
[[nodiscard]] std::uint64_t stored_rate(control::RepositoryControl& control);

/// Arranges the named series, one after the other, until no work is left. Does nothing if the
/// repository arranges by itself. Flushes stdout first.
///
/// Never makes the command fail, because the command's own work is done. Prints a note if a stop, a
/// full disk or damage ends arranging early. A later command or `varve arrange` continues the work.
void arrange_owed(control::RepositoryControl& control, const std::vector<std::string>& all,
                  const control::StopRequest& stop, Progress& progress, const Context& context);

/// Arranges at the end of a command without signal handling of its own. Before run(), SIGINT and
/// SIGTERM end the process. From run() on, the signals stop arranging after the current step, and
/// end the wait for an object store afterwards. Create the OwedArranging before opening the
/// repository, because opening starts threads, and destroy the OwedArranging after closing the
/// repository.
class OwedArranging {
 public:
  /// With `wanted` false, run() does nothing, and signals keep their effect.
  OwedArranging(bool wanted, const Context& context);
  /// Returns how closing the repository waits for its object store: `waits`, ended by the handled
  /// signals. Lifetime: the OwedArranging must outlive the result.
  [[nodiscard]] StoreWaits waits(StoreWaits waits = {}) const;
  /// Calls arrange_owed().
  void run(control::RepositoryControl& control, const std::vector<std::string>& all);

 private:
  const Context& context_;
  Progress progress_;
  control::StopRequest stop_;
  std::atomic<bool> begun_ = false;
  std::unique_ptr<SignalWatch> signals_;  // Last: the thread uses the members above.
};

}  // namespace varve::cli
