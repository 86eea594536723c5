// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arrange_policy.h"
#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/progress.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"

namespace varve::cli {
namespace {

struct ArrangeArguments {
  std::vector<std::string> words;
  std::string policy;
  std::optional<std::uint32_t> batch;
  std::optional<double> dead_percent;
  std::optional<std::uint32_t> fan;
  std::optional<std::uint32_t> window;
  std::optional<std::uint32_t> parity;
  std::string rate;
  bool json = false;
  bool exact = false;
  bool progress = false;
  bool compact_catalog = false;
  bool every_duplicate = false;
};

bool changes_settings(const ArrangeArguments& options) {
  return !options.policy.empty() || options.batch || options.dead_percent || options.fan ||
         options.window || options.parity;
}

Result<ArrangeSettings> changed(ArrangeSettings settings, const ArrangeArguments& options) {
  if (!options.policy.empty()) {
    VARVE_TRY_ASSIGN(settings.policy, parse_policy(options.policy));
  }
  if (options.dead_percent) {
    if (!(*options.dead_percent >= 0 && *options.dead_percent <= 100)) {
      return usage_error("--dead must be a percentage from 0 to 100");
    }
    settings.dead_permille = static_cast<std::uint32_t>(std::lround(*options.dead_percent * 10));
  }
  settings.batch = options.batch.value_or(settings.batch);
  settings.fan = options.fan.value_or(settings.fan);
  settings.window = options.window.value_or(settings.window);
  settings.parity_percent = options.parity.value_or(settings.parity_percent);
  return settings;
}

void print_report(const SeriesInfo& series, const ArrangeReport& report,
                  const ArrangeArguments& options) {
  if (options.json) {
    Json object{{"finished", report.finished},
                {"steps", report.done.steps},
                {"read_bytes", report.done.bytes_read},
                {"written_bytes", report.done.bytes_written},
                {"damaged_containers", report.done.damaged}};
    put_name(object, "series", series.name);
    print_json("arranged", std::move(object));
    return;
  }
  print(fmt::format("{}: {} in {} steps, {} read, {} written\n", name_text(series.name),
                    report.finished ? "arranged" : "not finished", report.done.steps,
                    size_text(report.done.bytes_read, options.exact),
                    size_text(report.done.bytes_written, options.exact)));
}

void print_compaction(const CatalogCompaction& done, const ArrangeArguments& options) {
  if (options.json) {
    print_json("compaction",
               {{"before_bytes", done.bytes_before}, {"after_bytes", done.bytes_after}});
    return;
  }
  print(fmt::format("catalog: {} before, {} after\n", size_text(done.bytes_before, options.exact),
                    size_text(done.bytes_after, options.exact)));
}

struct Arranged {
  bool finished = true;       ///< All work is done, except on damaged containers.
  std::uint64_t damaged = 0;  ///< Containers that were found damaged.
};

Result<Arranged> arrange(const ArrangeArguments& options, const Context& context) {
  std::optional<std::uint64_t> rate;
  if (!options.rate.empty()) {
    VARVE_TRY_ASSIGN(rate, parse_bytes(options.rate));
  }
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(options.words, {.purpose = control::Purpose::kChange}));
  Progress progress("arranging", options.progress || (Progress::terminal() && !context.quiet));
  control::StopRequest stop;
  const SignalWatch signals(
      {.stop = [&] { stop.stop(); }, .report = [&] { progress.print_line(); }});
  VARVE_TRY_ASSIGN(auto control, open_control(named.repository, control::Purpose::kChange, {},
                                              lock_wait_to_view()));
  VARVE_TRY_ASSIGN(Repository* const repository, control->view());
  VARVE_TRY_ASSIGN(const auto all, find_series(*repository, named.places));
  if (changes_settings(options)) {
    VARVE_TRY_ASSIGN(const ArrangeSettings present, control->arrange_settings(std::nullopt));
    VARVE_TRY_ASSIGN(const ArrangeSettings settings, changed(present, options));
    VARVE_TRY(as_usage(control->arrange_settings(settings)));
  }
  if (!rate) rate = stored_rate(*control);
  Arranged arranged;
  for (const SeriesInfo& series : all) {
    VARVE_TRY_ASSIGN(const ArrangeReport report,
                     control->arrange({.series = series.name,
                                       .bytes_per_second = *rate,
                                       .compare_all_new = true,
                                       .every_duplicate = options.every_duplicate},
                                      stop, [&](const ArrangeProgress& done) {
                                        progress.update(done.bytes_read + done.bytes_written, 0, 0);
                                      }));
    progress.clear();
    if (options.json || !context.quiet) print_report(series, report, options);
    arranged.finished = arranged.finished && report.finished;
    arranged.damaged += report.done.damaged;
    if (stop.stopped()) break;
  }
  if (options.compact_catalog && !stop.stopped()) {
    VARVE_TRY_ASSIGN(const CatalogCompaction done, control->compact_catalog());
    if (options.json || !context.quiet) print_compaction(done, options);
  }
  auto closed = control->close();
  if (!closed) return std::move(closed).error();
  if (stop.stopped())
    return Error(ErrorCode::kInterrupted,
                 "interrupted; a later command or a mount arranges the rest");
  return arranged;
}

int run_arrange(const ArrangeArguments& options, const Context& context) {
  const auto arranged = arrange(options, context);
  if (!arranged) return fail(arranged.error());
  if (!arranged->finished)
    note(context, "arranging is not finished: the disk is full, or the data is in use");
  if (arranged->damaged != 0) {
    report_problems({fmt::format(
        "arranging left damaged chunks where they are, in {}; `varve check --read-data` names the "
        "files: {}",
        arranged->damaged == 1 ? std::string("a container")
                               : fmt::format("{} containers", arranged->damaged),
        kHowToHeal)});
  }
  return arranged->finished && arranged->damaged == 0 ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_arrange_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<ArrangeArguments>();
  auto command = line.add_command(
      "arrange", "Move data that fell out of use to its volume, and put the other data in order");
  command.add_places(options->words, "SERIES, one or more (default: all)");
  command.add_option("--policy", options->policy, policy_help());
  command.add_option("--batch", options->batch, "Versions between two arrangings (batched)");
  command.add_option("--dead", options->dead_percent,
                     "Percentage of the active set that may be dead (tiered)");
  command.add_option("--fan", options->fan, "Runs of one level that the arranger merges (tiered)");
  command.add_option("--window", options->window,
                     "Versions in a row without a chunk before the chunk moves");
  command
      .add_option(
          "--parity", options->parity,
          "Parity to keep, as a percentage of the data: 0 (none) to 25; the repository stores it")
      .in(NumberRange<std::uint32_t>{0, kParityPercentMax});
  command.add_flag("--compact-catalog", options->compact_catalog,
                   "Then copy the catalog without its free pages; nothing may read the repository");
  command.add_flag("--every-duplicate", options->every_duplicate,
                   "Compare the whole pool again, and keep one copy of every duplicate");
  command.add_option("--arrange-rate", options->rate,
                     "Maximum number of bytes per second to read and write, such as 50M (default: "
                     "the setting arrange-rate, or no limit)");
  command.add_json_flag(options->json, "one for each series");
  command.add_bytes_flag(options->exact);
  command.add_progress_flag(options->progress);
  command.run([options, &context] { return run_arrange(*options, context); });
}

}  // namespace varve::cli
