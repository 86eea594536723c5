// SPDX-License-Identifier: Apache-2.0
#include "cli/check_in_parts.h"

#include <fmt/core.h>

#include <chrono>
#include <stop_token>

#include "base/log.h"
#include "cli/check_output.h"
#include "cli/known_damage.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/store_check_output.h"
#include "varve/check.h"

namespace varve::cli {
namespace {

Result<ScrubReport> scrub(const PartOptions& options, const Context& context) {
  using Clock = std::chrono::steady_clock;
  ScrubOptions how;
  how.restart = options.restart;
  if (!options.rate.empty()) {
    VARVE_TRY_ASSIGN(how.bytes_per_second, parse_bytes(options.rate));
  }
  Clock::time_point end = Clock::time_point::max();
  if (!options.time.empty()) {
    VARVE_TRY_ASSIGN(const auto seconds, parse_duration(options.time));
    end = Clock::now() + std::chrono::seconds(seconds);
  }
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("checking", shown);
  std::stop_source source;
  how.stop = source.get_token();
  // After a stop, scrub() records the position.
  const SignalWatch signals(
      {.stop = [&] { source.request_stop(); }, .report = [&] { progress.print_line(); }});
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository, true));
  repository->will_read_once();
  return repository->scrub(how, [&](const CheckProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, 0);
    if (Clock::now() >= end) source.request_stop();
  });
}

}  // namespace

int check_in_parts(PartOptions options, const Context& context) {
  if (const auto given = take_repository({{"REPO", &options.repository}}, control::Purpose::kLook);
      !given) {
    return fail(given.error());
  }
  // First: a process can open the state of its store only once at a time.
  const auto store = check_store_of(options.repository, false);
  if (!store && store.error().code() != ErrorCode::kUnavailable) return fail(store.error());
  if (!store) {
    base::log(base::LogLevel::kWarning,
              store.error().message() + "; the objects in the store are not checked");
  }
  auto report = scrub(options, context);
  if (!report) return fail(report.error());
  quarantine_damage(options.repository, report->check, context);
  if (report->damages_before != 0) {
    note(context,
         fmt::format("earlier runs of this pass found {} damaged places", report->damages_before));
  }
  print_check_report(report->check, options.json, context);
  const bool is_sound = !store || print_store_check(*store, options.json, context);
  if (!is_sound || !report->check.damages.empty()) return kExitError;
  return report->check.finished ? kExitOk : kExitIncomplete;
}

}  // namespace varve::cli
