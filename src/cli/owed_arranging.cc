// SPDX-License-Identifier: Apache-2.0
#include "cli/owed_arranging.h"
#include "cli/options.h"

#include <cstdlib>

#include "cli/output.h"
#include "varve/arrange.h"

namespace varve::cli {

void add_no_arrange_flag(Command& command, bool& off) {
  command.add_flag("--no-arrange", off, "Leave arranging to another command or a mount");
}

void arrange_owed(Repository& repository, const std::vector<SeriesInfo>& all,
                  const std::stop_token& stop, Progress& progress, const Context& context) {
  // An error in writing is told of at the end of the process.
  static_cast<void>(finish_output());
  for (const SeriesInfo& series : all) {
    ArrangeOptions options;
    options.stop = stop;
    options.progress = [&](const ArrangeProgress& done) {
      progress.update(done.bytes_read + done.bytes_written, 0, 0);
    };
    const auto report = repository.arrange(series.id, options);
    progress.clear();
    const std::string name = name_text(series.name);
    if (stop.stop_requested()) {
      note(context, name + ": the rest of the arranging is put off; nothing is lost by that");
      return;
    }
    if (!report) {
      note(context, name + ": not arranged: " + report.error().message());
    } else if (!report->finished) {
      note(context, name + ": the disk is full, and arranging is put off");
    }
  }
}

OwedArranging::OwedArranging(bool wanted, const Context& context)
    : context_(context), progress_("arranging", wanted && Progress::terminal() && !context.quiet) {
  if (!wanted) return;
  signals_ = std::make_unique<SignalWatch>(
      SignalWatch::Actions{.stop =
                               [this] {
                                 if (!begun_) std::_Exit(kExitInterrupted);
                                 stop_.request_stop();
                               },
                           .report = [this] { progress_.print_line(); }});
}

void OwedArranging::run(Repository& repository, const std::vector<SeriesInfo>& all) {
  if (!signals_) return;
  begun_ = true;
  arrange_owed(repository, all, stop_.get_token(), progress_, context_);
}

}  // namespace varve::cli
