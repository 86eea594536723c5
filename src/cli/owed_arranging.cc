// SPDX-License-Identifier: Apache-2.0
#include "cli/owed_arranging.h"

#include <cstdlib>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/wait_signals.h"
#include "varve/arrange.h"

namespace varve::cli {

void add_no_arrange_flag(Command& command, bool& off) {
  command.add_flag("--no-arrange", off,
                   "Do not arrange afterwards; a later command or a mount does it");
}

std::uint64_t stored_rate(control::RepositoryControl& control) {
  const auto settings = control.upkeep({});
  return settings ? settings->arrange_bytes_per_second.value_or(0) : 0;
}

void arrange_owed(control::RepositoryControl& control, const std::vector<std::string>& all,
                  const control::StopRequest& stop, Progress& progress, const Context& context) {
  if (control.arranges_by_itself()) return;
  // The end of the process reports an error of stdout.
  static_cast<void>(finish_output());
  const std::uint64_t rate = stored_rate(control);
  for (const std::string& series : all) {
    const auto report = control.arrange(
        {.series = series, .bytes_per_second = rate}, stop, [&](const ArrangeProgress& done) {
          progress.update(done.bytes_read + done.bytes_written, 0, 0);
        });
    progress.clear();
    const std::string name = name_text(series);
    if (stop.stopped()) {
      note(context, name +
                        ": arranging was interrupted; a later command or a mount continues it, and "
                        "no data is lost");
      return;
    }
    if (!report) {
      note(context, name + ": arranging failed: " + report.error().message());
    } else if (!report->finished) {
      note(context, name + ": the disk is full; arranging continues when there is space");
    }
  }
}

OwedArranging::OwedArranging(bool wanted, const Context& context)
    : context_(context), progress_("arranging", wanted && Progress::terminal() && !context.quiet) {
  if (!wanted) return;
  signals_ = std::make_unique<SignalWatch>(
      SignalWatch::Actions{.stop =
                               [this] {
                                 if (!begun_) {
                                   WaitSignals::tell();
                                   std::_Exit(kExitInterrupted);
                                 }
                                 stop_.stop();
                               },
                           .report = [this] { progress_.print_line(); }});
}

StoreWaits OwedArranging::waits(StoreWaits waits) const {
  if (signals_) waits.stopped = [this] { return stop_.stopped(); };
  return waits;
}

void OwedArranging::run(control::RepositoryControl& control, const std::vector<std::string>& all) {
  if (!signals_) return;
  begun_ = true;
  arrange_owed(control, all, stop_, progress_, context_);
}

}  // namespace varve::cli
