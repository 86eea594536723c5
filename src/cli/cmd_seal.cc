// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/quantity.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "cli/version_target.h"
#include "varve/backup.h"

namespace varve::cli {
namespace {

constexpr const char* kForever = "forever";

struct SealArguments {
  std::string first;   ///< The repository, or a path in a mount.
  std::string second;  ///< The version.
  std::string name;    ///< Name of the sealed version.
  std::string as;      ///< The same, from --as.
  std::string time;    ///< Claimed time; "" for none.
  std::string wait;    ///< "" = do not wait; otherwise "forever" or a number of seconds.
  bool force = false;
  bool keep = false;
  bool no_arrange = false;
  bool no_wait = false;
  bool json = false;
};

/// Accepts the name before or after the version: a name has no slash, a version has one.
Result<void> sort_arguments(SealArguments& options) {
  const bool second_is_name =
      !options.second.empty() && options.second.find('/') == std::string::npos;
  if (second_is_name && options.name.empty()) options.name = std::exchange(options.second, {});
  if (!options.name.empty() && !options.as.empty()) {
    return usage_error("the name is given twice; give it as NAME or with --as");
  }
  if (options.name.find('/') != std::string::npos) {
    return usage_error("\"" + options.name + "\" is not a valid name: it contains a slash");
  }
  if (options.name.empty()) options.name = options.as;
  return {};
}

void print_sealed(const control::SealReply& reply, const SealArguments& options,
                  const Context& context) {
  if (options.json) {
    print_json("version", version_json(reply.sealed));
    if (reply.next) print_json("version", version_json(*reply.next));
    return;
  }
  if (!context.quiet) print(version_summary(reply.sealed));
  if (reply.next) {
    note(context, reply.next->series_name + "/" + reply.next->name +
                      " stays open as a clone of the sealed version");
  }
}

Result<void> add_waiting(const SealArguments& options, control::SealRequest& request) {
  request.wait = !options.wait.empty();
  if (!request.wait || options.wait == kForever) return {};
  const char* const end = options.wait.data() + options.wait.size();
  const auto parsed = std::from_chars(options.wait.data(), end, request.wait_seconds);
  if (parsed.ec != std::errc() || parsed.ptr != end ||
      request.wait_seconds > control::kSealWaitSecondsMax) {
    return usage_error("--wait=" + options.wait + ": give a number of seconds, such as --wait=30");
  }
  request.wait = request.wait_seconds != 0;
  return {};
}

Result<VersionInfo> seal(const VersionTarget& target, const SealArguments& options,
                         const StoreWaits& waits, const Context& context) {
  control::SealRequest request;
  request.version = name_of(target.version);
  request.new_name = options.name;
  if (!options.name.empty()) {
    VARVE_TRY(check_new_names({target.version.series, options.name, {}}, VersionState::kSealed));
  }
  VARVE_TRY(add_waiting(options, request));
  request.force = options.force;
  request.keep = options.keep;
  std::optional<Timestamp> claimed;
  if (!options.time.empty()) {
    VARVE_TRY_ASSIGN(claimed, parse_time(options.time));
  }
  OwedArranging owed(!options.no_arrange, context);
  VARVE_TRY_ASSIGN(const auto control,
                   open_control(target.repository, control::Purpose::kChange, owed.waits(waits)));
  const auto claim = claimed ? control->claim({request.version, *claimed}) : Result<void>();
  const auto sealed = claim ? control->seal(request, control::StopRequest())
                            : Result<control::SealReply>(claim.error());
  if (sealed) {
    if (!sealed->warning.empty()) report_problems({sealed->warning});
    print_sealed(*sealed, options, context);
    report_lost_files(*control, sealed->sealed.series_name + "/" + sealed->sealed.name,
                      options.json);
    owed.run(*control, {sealed->sealed.series_name});
  }
  auto closed = control->close();
  if (!sealed) return sealed.error();
  if (!closed) return std::move(closed).error();
  return sealed->sealed;
}

Result<void> seal_and_wait(const VersionTarget& target, const SealArguments& options,
                           const Context& context) {
  const StoreWaits waits{.wanted = !options.no_wait, .shows_progress = !context.quiet};
  VARVE_TRY_ASSIGN(const auto version, seal(target, options, waits, context));
  return wait_for_replication(target.repository, version, waits, version.sealed_at);
}

int run_seal(SealArguments options, const Context& context) {
  if (const auto swapped = swapped_words(options.first, {options.second, options.name})) {
    return fail(*swapped);
  }
  if (const auto sorted = sort_arguments(options); !sorted) return fail(sorted.error());
  const auto target = find_target(options.first, options.second);
  if (!target) return fail(target.error());
  const auto sealed = seal_and_wait(*target, options, context);
  return sealed ? kExitOk : fail(sealed.error());
}

}  // namespace

void add_seal_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<SealArguments>();
  auto command = line.add_command("seal", "Make an open version immutable and durable");
  command.add_option("REPO", options->first,
                     "Folder of the repository (default: $VARVE_REPO); or, without VERSION, the "
                     "path of the version in a mount");
  command.add_option("VERSION", options->second, "SERIES/VERSION");
  command.add_option("NAME", options->name,
                     "Name of the sealed version (default: its own name without .partial)");
  command.add_option("--as", options->as, "The same as NAME");
  command
      .add_option("--time", options->time,
                  "Time of the data, which the version shows beside the time of its seal: "
                  "2027-01-31 or 2027-01-31T18:30[:15][Z]")
      .type_name("TIME");
  command.add_flag("--keep", options->keep,
                   "Leave a version open under the old name, as a clone of the sealed one");
  command.add_flag("--wait{forever}", options->wait,
                   "Wait until no program writes to the version; =SECONDS limits the wait");
  command.add_flag("--force", options->force,
                   "Seal even if programs have files open for writing; the version contains the "
                   "data written so far, and later writes fail");
  add_no_arrange_flag(command, options->no_arrange);
  add_no_wait_flag(command, options->no_wait);
  command.add_json_flag(options->json, "the sealed version, then the version that stays open");
  command.run([options, &context] { return run_seal(*options, context); });
}

}  // namespace varve::cli
