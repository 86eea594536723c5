// SPDX-License-Identifier: Apache-2.0
// Arranging at the end of commands that leave something to arrange, where no daemon does it.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signal_watch.h"
#include "varve/repository.h"

namespace varve::cli {

/// Adds --no-arrange, which sets `off`.
void add_no_arrange_flag(Command& command, bool& off);

/// Arranges the series, one after the other, until nothing is owed. What the command was for is
/// done by then, so that nothing here makes it fail: what ends arranging early (a stop, a full
/// disk, damage) is noted, and what is left waits for the next command, or for `varve arrange`.
/// What was printed before is on its way when it begins.
void arrange_owed(Repository& repository, const std::vector<SeriesInfo>& all,
                  const std::stop_token& stop, Progress& progress, const Context& context);

/// The same for commands that have no signals to watch for otherwise: SIGINT and SIGTERM end the
/// process, as they do by themselves, until arranging has begun; then they end that after its
/// present step. Make it before the repository is opened, which starts threads.
class OwedArranging {
 public:
  /// `wanted` false: run() does nothing, and signals are left alone.
  OwedArranging(bool wanted, const Context& context);
  void run(Repository& repository, const std::vector<SeriesInfo>& all);

 private:
  const Context& context_;
  Progress progress_;
  std::stop_source stop_;
  std::atomic<bool> begun_ = false;
  std::unique_ptr<SignalWatch> signals_;  // Last: its thread uses the others.
};

}  // namespace varve::cli
